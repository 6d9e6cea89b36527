"""A filing gateway that takes a filing into its books and dies before it says so."""

from contextlib import ExitStack
from datetime import timedelta

from tests.integration.cases.gateway import Gateway
from tests.integration.cases.ward import Ward, other_pairs, pairs
from tests.integration.celery.spine import eventually

from slackwater.core.job import JobState

SOON = timedelta(seconds=3)


@pairs
def test_one_filing_and_one_success_though_the_answer_was_lost(ward: Ward, gateway: Gateway, lane: str) -> None:
    with ward.worker("one", lane=lane, CASES_PEER=gateway.url):
        job = ward.tasks[f"{lane}.file"].delay("run").id
        ward.done(job)
        again = ward.tasks[f"{lane}.file"].delay("run").id
        ward.done(again)
        assert gateway.filings("run") == [ward.meta(job)["result"]] == [ward.meta(again)["result"]]
        assert len(ward.runs(job)) == 2
        assert not ward.runs(again)


@other_pairs
def test_a_retry_after_start_by_finds_out_what_the_first_did(ward: Ward, gateway: Gateway, lane: str) -> None:
    with ward.worker("one", lane=lane, CASES_PEER=gateway.url):
        gateway.hangs.set()
        start_by = ward.sw.clock.calendar() + SOON
        job = ward.tasks[f"{lane}.file"].apply_async(("run",), headers=ward.header(start_by=start_by)).id
        eventually(lambda: gateway.filings("run"))
        eventually(lambda: ward.sw.clock.calendar() > start_by)
        gateway.ends.set()
        ward.done(job)
        assert gateway.filings("run") == [ward.meta(job)["result"]]


@pairs
def test_a_redelivery_after_start_by(ward: Ward, gateway: Gateway, lane: str) -> None:
    """With a key it runs, and finds the filing; without one nobody could tell, and it ends as expired."""
    gateway.hangs.set()
    with ExitStack() as first:
        one = first.enter_context(ward.worker("one", lane=lane, slots=2, CASES_PEER=gateway.url))
        start_by = ward.sw.clock.calendar() + SOON
        keyed, unkeyed = (
            ward.tasks[f"{lane}.{task}"].apply_async((run,), headers=ward.header(start_by=start_by)).id
            for task, run in (("file", "keyed"), ("file_unkeyed", "unkeyed"))
        )
        eventually(lambda: gateway.filings("keyed") and gateway.filings("unkeyed"))
        one.kill()
    eventually(lambda: ward.sw.clock.calendar() > start_by)
    with ward.worker("two", lane=lane, CASES_PEER=gateway.url):
        meta = ward.ended(keyed)
        assert (meta["status"], gateway.filings("keyed")) == ("SUCCESS", [meta["result"]])
        assert len(ward.runs(keyed)) == 2
        assert ward.ended(unkeyed)["status"] == "REVOKED"
        assert ward.sw.store.endings.find([unkeyed])[unkeyed].state is JobState.EXPIRED
        assert len(gateway.filings("unkeyed")) == len(ward.runs(unkeyed)) == 1

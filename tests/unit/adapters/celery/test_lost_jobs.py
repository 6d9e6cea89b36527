"""What becomes of lost jobs: as they wait in the store, and as they are given up."""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from tests.unit.adapters.celery.conftest import NOON, Application

from slackwater import hours
from slackwater.adapters.memory import MemoryStore
from slackwater.core.admission import Ask, KeyRule, LeaseRule
from slackwater.core.job import HEADER, JobState, Mark
from slackwater.core.message import Message
from slackwater.core.under_way import Start, UnderWay

Make = Callable[..., Application]
MARK = Mark(published_at=NOON, lane="till", start_by=NOON + hours(1), tenant="acme")


def lost(job: str, *, key: str | None = None, kept: bool = True) -> UnderWay:
    message = Message(
        job=job,
        task="keyed",
        queue="till",
        headers={"id": job, "task": "keyed", HEADER: MARK.to_header()},
        body=b"[[7], {}, {}]",
        content_type="application/json",
        content_encoding="utf-8",
    )
    return UnderWay(
        start=Start(job, 1, 2), task="keyed", lane="till", lease="account:7", key=key, message=message if kept else None
    )


def test_it_waits_for_its_own_lease_and_its_mark_says_that_a_copy_may_come(make_application: Make) -> None:
    application = make_application()
    held = application.sw.lost_jobs().as_held(lost("a"), "lost: a test")
    assert (held.job, held.lane, held.tries, held.waits_for, held.reason) == (
        "a",
        "till",
        1,
        "account:7",
        "lost: a test",
    )
    mark = Mark.from_header(held.message.headers[HEADER])
    assert mark == replace(MARK, released=True)


@pytest.mark.parametrize(("key", "start_by"), [(None, MARK.start_by), ("effect:7", None)])
def test_with_a_key_it_is_never_too_late_to_find_out(make_application: Make, key: str | None, start_by: object) -> None:
    held = make_application().sw.lost_jobs().as_held(lost("a", key=key), "lost")
    assert held.start_by == start_by


def test_one_whose_message_is_not_kept_cannot_wait(make_application: Make) -> None:
    with pytest.raises(LookupError, match="its message is not kept"):
        make_application().sw.lost_jobs().as_held(lost("a", kept=False), "lost")


def test_its_result_says_held(make_application: Make) -> None:
    application, job = make_application(), str(uuid4())
    acts = application.sw.lost_jobs()
    acts.told_held(acts.as_held(lost(job), "lost"))
    assert application.status(job) == "HELD"


@pytest.mark.parametrize("kept", [True, False])
def test_one_that_is_given_up_ends_as_dead_with_its_run_its_key_and_a_letter(
    make_application: Make, *, kept: bool
) -> None:
    store = MemoryStore()
    application, job = make_application(store), str(uuid4())
    lease = LeaseRule(name="account:7", lives_for=hours(1))
    ask = Ask(
        job=job, tries=1, task="keyed", boot=UUID(int=1), redelivered=False, key=KeyRule(name="effect:7"), lease=lease
    )
    store.runs.begin([ask])
    application.sw.lost_jobs().give_up(lost(job, key="effect:7", kept=kept), "its lane is gone")

    letter = store.dead_letters.get(job)
    assert letter is not None
    assert (letter.state, letter.cause, letter.reason) == (JobState.DEAD, "lost", "its lane is gone")
    assert (letter.message is not None, letter.tenant) == (kept, "acme" if kept else None)
    key = store.runs.key("effect:7")
    assert key is not None
    assert (store.runs.runs([job])[job].state, key.state) == (JobState.DEAD, JobState.FAILED)
    assert application.status(job) == "FAILURE"
    assert store.endings.find([job])[job].state is JobState.DEAD

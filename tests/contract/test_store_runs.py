from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta
from uuid import uuid4

import pytest
from tests.contract.deliveries import BOOT, MINUTE, NOW, OTHER, ask, begin, end, keyed, leased, run

from slackwater.core.admission import Admit, Bury, Key, KeyRule, Resolve, Run, Wait, WhenTaken
from slackwater.core.job import JobState
from slackwater.ports import Store
from slackwater.ports.delivery import Begun


def test_asking_nothing_and_ending_nothing_changes_nothing(store: Store) -> None:
    assert list(store.runs.begin([])) == []
    assert list(store.runs.announce([], at=NOW, stale_before=NOW)) == []
    store.runs.finish([])
    store.runs.hand_back([])
    assert store.runs.runs([]) == {}


def test_a_start_is_written_as_running_with_its_attempt(store: Store) -> None:
    assert begin(store, ask("a", redelivered=True)).admission == Admit(attempt=2)
    assert begin(store, ask("a", redelivered=True)).admission == Admit(attempt=3)

    assert run(store, "a") == Run(job="a", tries=0, attempts=3)


def test_what_is_not_admitted_leaves_no_run_no_key_and_no_lease(store: Store) -> None:
    first = keyed("first")
    begin(store, first)

    assert begin(store, keyed("again", boot=OTHER)).admission == Resolve(
        to="first", state=JobState.RUNNING, reason="key run:1: job first is under way"
    )
    poison = ask("poison", redelivered=True, attempt_limit=1, key=KeyRule(name="run:2"), lease=leased("key:run:2"))
    assert isinstance(begin(store, poison).admission, Bury)

    assert store.runs.runs(["again", "poison"]) == {}
    assert store.runs.key("run:2") is None
    assert store.runs.lease("key:run:2") is None


def test_each_delivery_of_a_batch_sees_what_those_before_it_took(store: Store) -> None:
    asks = [ask("a", lease=leased()), ask("b", lease=leased()), ask("c", lease=leased(when_taken=WhenTaken.SKIP))]
    first, second, third = store.runs.begin(asks)

    assert first.admission == Admit(attempt=1, takes_lease=True)
    assert second.admission == Wait(on="account:7", reason="lease account:7: job a is under way")
    assert isinstance(third.admission, Resolve)
    assert third.admission.to == "a"
    assert (second.fence, third.fence) == (None, None)


def test_a_lease_replaced_within_a_batch_belongs_to_the_last_with_the_highest_fence(store: Store) -> None:
    asks = [ask(job, lease=leased(when_taken=WhenTaken.REPLACE)) for job in ("b", "a")]
    first, second = store.runs.begin(asks)

    held = store.runs.lease("account:7")
    assert first.fence is not None
    assert second.fence is not None
    assert held is not None
    assert (held.job, held.fence) == ("a", second.fence)
    assert second.fence > first.fence


def test_a_key_and_a_lease_become_the_jobs_and_the_key_names_the_lease(store: Store) -> None:
    one = ask("a", key=KeyRule(name="run:1"), lease=leased("account:7"))
    begun = begin(store, one)

    assert store.runs.key("run:1") == Key(name="run:1", job="a", state=JobState.RUNNING, lease="account:7")
    held = store.runs.lease("account:7")
    assert held is not None
    assert (held.job, held.boot, held.fence, held.live) == ("a", BOOT, begun.fence, True)


def test_each_taking_of_a_lease_gets_a_higher_fence_also_when_it_was_freed(store: Store) -> None:
    fences = []
    for number in range(5):
        one = ask(f"job-{number}", lease=leased())
        begun = begin(store, one)
        fences.append(begun.fence or 0)
        store.runs.finish([end(one, begun)])

    assert fences == sorted(set(fences))


def test_a_finished_run_ends_again_and_frees_its_lease(store: Store) -> None:
    one = ask("a", lease=leased())
    store.runs.finish([end(one, begin(store, one))])

    assert store.runs.lease("account:7") is None
    assert begin(store, replace(one, redelivered=True)).admission == Resolve(
        to="a", state=JobState.DONE, reason="it has ended as done"
    )


def test_a_key_keeps_how_its_job_ended(store: Store) -> None:
    one = keyed("a")
    store.runs.finish([end(one, begin(store, one), digest="ab12")])

    assert store.runs.key("run:1") == Key(name="run:1", job="a", state=JobState.DONE, digest="ab12", ended_at=NOW)
    admission = begin(store, keyed("b")).admission
    assert admission == Resolve(to="a", state=JobState.DONE, reason="key run:1: done already")


@pytest.mark.parametrize("state", [one for one in JobState if one.final and one is not JobState.DONE])
def test_a_key_whose_job_did_not_succeed_is_free_for_the_next(store: Store, state: JobState) -> None:
    one = keyed("a")
    store.runs.finish([end(one, begin(store, one), state)])
    key = store.runs.key("run:1")

    assert key is not None
    assert key.state is JobState.FAILED
    assert begin(store, keyed("b")).admission == Admit(attempt=1, takes_key=True, takes_lease=True)


def test_a_success_older_than_wanted_does_not_count(store: Store) -> None:
    one = keyed("a")
    store.runs.finish([end(one, begin(store, one))])

    assert isinstance(begin(store, keyed("b", fresh_since=NOW)).admission, Resolve)
    assert isinstance(begin(store, keyed("c", fresh_since=NOW + MINUTE)).admission, Admit)
    key = store.runs.key("run:1")
    assert key is not None
    assert (key.job, key.state, key.digest, key.ended_at) == ("c", JobState.RUNNING, None, None)


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.HELD])
def test_a_job_that_comes_again_keeps_its_key_and_counts_attempts_from_one(store: Store, state: JobState) -> None:
    one = keyed("a", redelivered=True)
    store.runs.finish([end(one, begin(store, one), state)])
    key, known = store.runs.key("run:1"), run(store, "a")

    assert key is not None
    assert known is not None
    assert (key.job, key.state, key.ended_at) == ("a", JobState.QUEUED, None)
    assert (known.state, known.attempts) == (state, 2)
    assert store.runs.lease("key:run:1") is None
    assert begin(store, replace(one, tries=1, redelivered=False)).admission == Admit(
        attempt=1, takes_key=True, takes_lease=True
    )


def test_a_holder_that_was_replaced_changes_nothing_of_its_successors(store: Store) -> None:
    old = ask("old", key=KeyRule(name="run:1"), lease=leased())
    begun = begin(store, old)
    store.runs.lapse(BOOT, ["old"])
    new = replace(old, job="new", boot=OTHER)
    begin(store, new)
    key, lease = store.runs.key("run:1"), store.runs.lease("account:7")

    store.runs.finish([end(old, begun)])

    assert (store.runs.key("run:1"), store.runs.lease("account:7")) == (key, lease)
    old_run, new_run = run(store, "old"), run(store, "new")
    assert old_run is not None
    assert new_run is not None
    assert (old_run.state, new_run.state) == (JobState.DONE, JobState.RUNNING)


def test_a_delivery_that_another_of_its_own_job_has_replaced_changes_nothing(store: Store) -> None:
    one = keyed("a")
    begun = begin(store, one)
    store.runs.lapse(BOOT, ["a"])
    again = begin(store, replace(one, redelivered=True, boot=OTHER))
    before = (run(store, "a"), store.runs.key("run:1"), store.runs.lease("key:run:1"))

    store.runs.finish([end(one, begun, JobState.FAILED)])

    assert (run(store, "a"), store.runs.key("run:1"), store.runs.lease("key:run:1")) == before
    store.runs.finish([end(one, again)])
    assert store.runs.lease("key:run:1") is None


def test_an_end_is_never_changed_and_an_earlier_try_ends_nothing_of_a_later_one(store: Store) -> None:
    second = ask("a", tries=1, key=KeyRule(name="run:1"))
    begun = begin(store, second)
    store.runs.finish([end(replace(second, tries=0), begun, JobState.FAILED)])
    known, key = run(store, "a"), store.runs.key("run:1")
    assert known is not None
    assert key is not None
    assert (known.state, key.state) == (JobState.RUNNING, JobState.RUNNING)

    store.runs.finish([end(second, begun), end(second, begun, JobState.FAILED)])
    known, key = run(store, "a"), store.runs.key("run:1")
    assert known is not None
    assert key is not None
    assert (known.state, key.state) == (JobState.DONE, JobState.DONE)


@pytest.mark.parametrize("state", [JobState.DONE, JobState.FAILED])
def test_the_end_of_the_holder_ends_its_job_though_a_later_try_of_it_waits(store: Store, state: JobState) -> None:
    """A holder that stood still is fenced out and comes again as the next try, while the one that replaced it works."""
    stale = keyed("a")
    begin(store, stale)
    store.runs.lapse_all(BOOT)
    now = keyed("a", boot=OTHER, redelivered=True)
    begun = begin(store, now)
    again = keyed("a", tries=1)
    assert isinstance(begin(store, again).admission, Wait)

    store.runs.finish([end(now, begun, state)])

    assert begin(store, again).admission == Resolve(to="a", state=state, reason=f"it has ended as {state}")
    key = store.runs.key("run:1")
    assert key is not None
    assert key.state is state
    assert store.runs.lease("key:run:1") is None


def test_a_try_that_comes_again_ends_nothing_of_the_later_one_that_waits_for_it(store: Store) -> None:
    first, later = keyed("a"), keyed("a", tries=1)
    begun = begin(store, first)
    begin(store, later)

    store.runs.finish([end(first, begun, JobState.QUEUED)])

    assert begin(store, later).admission == Admit(attempt=1, takes_key=True, takes_lease=True)


def test_a_holder_whose_lease_was_ended_ends_nothing_of_a_later_try_that_waits(store: Store) -> None:
    first, later = keyed("a"), keyed("a", tries=1)
    begun = begin(store, first)
    begin(store, later)
    store.runs.lapse_all(BOOT)

    store.runs.finish([end(first, begun)])

    assert begin(store, later).admission == Admit(attempt=1, takes_key=True, takes_lease=True)


def test_ends_of_a_batch_count_in_their_order_also_of_one_job(store: Store) -> None:
    first = ask("a", redelivered=True)
    begun = begin(store, first)
    again = replace(first, tries=1)
    store.runs.finish([end(first, begun, JobState.QUEUED), end(again, begun, JobState.DONE), end(ask("b"), begun)])

    assert run(store, "a") == Run(job="a", tries=1, attempts=1, state=JobState.DONE)
    assert run(store, "b") == Run(job="b", tries=0, attempts=1, state=JobState.DONE)


def test_what_is_handed_back_is_no_attempt_and_its_lease_is_free(store: Store) -> None:
    one = ask("a", lease=leased())
    begin(store, one)
    for _ in range(5):
        store.runs.hand_back([("a", 0)], boot=BOOT)
        assert store.runs.lease("account:7") is None
        assert begin(store, replace(one, redelivered=True)).admission == Admit(attempt=1, takes_lease=True)


def test_a_body_that_ends_as_handed_back_is_no_attempt(store: Store) -> None:
    one = ask("a", lease=leased(), attempt_limit=1)
    for _ in range(3):
        begun = begin(store, one)
        assert begun.admission == Admit(attempt=1, takes_lease=True)
        store.runs.finish([end(one, begun, JobState.QUEUED, handed_back=True)])
        assert store.runs.lease("account:7") is None
        one = replace(one, redelivered=True)
    store.runs.finish([end(one, begin(store, one), JobState.QUEUED)])
    assert begin(store, one).admission == Bury(attempts=1, reason="started 1 times without an end, at most 1 allowed")


def test_a_body_that_ends_as_handed_back_changes_nothing_of_the_delivery_that_replaced_it(store: Store) -> None:
    one = ask("a", lease=leased())
    begun = begin(store, one)
    store.runs.lapse_all(BOOT)
    begin(store, replace(one, boot=OTHER, redelivered=True))
    before = run(store, "a")

    store.runs.finish([end(one, begun, JobState.QUEUED, handed_back=True)])

    assert run(store, "a") == before
    assert store.runs.lease("account:7") is not None


def test_a_plain_job_that_is_handed_back_gets_a_run(store: Store) -> None:
    store.runs.hand_back([("plain", 2), ("plain", 2)])

    assert run(store, "plain") == Run(job="plain", tries=2, attempts=1, handed_back=True, state=JobState.QUEUED)
    assert begin(store, ask("plain", tries=2, redelivered=True)).admission == Admit(attempt=1)


def test_handing_back_an_earlier_try_or_an_ended_job_changes_nothing(store: Store) -> None:
    begin(store, ask("later", tries=1))
    store.runs.finish([end(ask("ended"), Begun(admission=Admit(attempt=1)))])
    before = store.runs.runs(["later", "ended"])

    store.runs.hand_back([("later", 0), ("ended", 0)])

    assert store.runs.runs(["later", "ended"]) == before


def test_what_another_process_has_of_a_job_by_now_is_not_handed_back(store: Store) -> None:
    one = ask("a", lease=leased())
    begin(store, one)
    store.runs.lapse_all(BOOT)
    begin(store, replace(one, boot=OTHER, redelivered=True))

    store.runs.hand_back([("a", 0)], boot=BOOT)

    known, held = run(store, "a"), store.runs.lease("account:7")
    assert known is not None
    assert held is not None
    assert (known.handed_back, held.boot) == (False, OTHER)


def test_lapsing_ends_the_leases_of_those_bodies_and_of_that_process_alone(store: Store) -> None:
    for job, boot in (("a", BOOT), ("b", BOOT), ("c", BOOT), ("d", OTHER)):
        begin(store, ask(job, boot=boot, lease=leased(job)))

    store.runs.lapse(BOOT, ["a", "d"])
    assert [name for name in "abcd" if store.runs.lease(name)] == ["b", "c", "d"]
    store.runs.lapse_all(BOOT)
    assert [name for name in "abcd" if store.runs.lease(name)] == ["d"]


def test_pruning_deletes_what_has_ended_and_nothing_that_is_under_way(store: Store) -> None:
    for one in (keyed("done", name="old"), ask("plain", redelivered=True)):
        store.runs.finish([end(one, begin(store, one))])
    begin(store, keyed("busy"))

    assert store.runs.prune(before=store.runs.now() - MINUTE) == 0
    assert store.runs.prune(before=store.runs.now() + MINUTE) == 3
    assert store.runs.runs(["done", "plain", "busy"]).keys() == {"busy"}
    assert store.runs.key("old") is None
    assert store.runs.key("run:1") is not None
    assert store.runs.lease("key:run:1") is not None


def test_the_stores_clock_moves_on_and_is_in_utc(store: Store) -> None:
    first = store.runs.now()

    assert first.tzinfo is UTC
    assert store.runs.now() >= first


def test_a_thousand_deliveries_are_decided_at_once(store: Store) -> None:
    asks = [keyed(str(uuid4()), name=f"run:{number % 500}") for number in range(1000)]
    begun = store.runs.begin(asks)

    assert sum(isinstance(one.admission, Admit) for one in begun) == 500
    store.runs.finish([end(one, its) for one, its in zip(asks[:500], begun, strict=False)])
    assert all(store.runs.lease(f"key:run:{number}") is None for number in range(0, 500, 50))


def test_what_a_lost_job_has_taken_since_is_not_ended_with_it(store: Store) -> None:
    again = ask("a", lease=leased())
    begin(store, again)
    store.runs.lapse(BOOT, ["a"], lost_for=timedelta(hours=1))
    assert store.runs.lease("account:7") is not None
    store.runs.lapse(BOOT, ["a"])
    assert store.runs.lease("account:7") is None

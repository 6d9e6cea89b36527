"""What is kept of jobs under way, and how a lost one goes back to wait; the same in memory and in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from slackwater.core.admission import Admit, Ask, LeaseRule, Run
from slackwater.core.job import JobState
from slackwater.core.message import Held, Message
from slackwater.core.under_way import Offer, Start
from slackwater.ports import Store
from slackwater.ports.delivery import Begun, Finish

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
BOOT, OTHER = UUID(int=1), UUID(int=2)
LEASE = LeaseRule(name="account:7", lives_for=timedelta(minutes=1))
FIRST = Start("a", 0, 1)
Meanwhile = Callable[[Store, Ask, Begun], None]


def message(job: str, body: bytes = b"[[7], {}, {}]") -> Message:
    return Message(
        job=job,
        task="sync",
        queue="till",
        headers={"id": job, "task": "sync"},
        body=body,
        content_type="application/json",
        content_encoding="utf-8",
        properties={"priority": 0},
    )


def ask(job: str = "a", **given: Any) -> Ask:
    values: dict[str, Any] = {"tries": 0, "task": "sync", "boot": BOOT, "redelivered": False, "lease": LEASE}
    return Ask(job=job, **values | given)


def offer(job: str = "a", **given: Any) -> Offer:
    values: dict[str, Any] = {"tries": 0, "task": "sync", "lane": "till", "lease": LEASE.name, "message": message(job)}
    return Offer(job=job, **values | given)


def begin(store: Store, one: Ask) -> Begun:
    (begun,) = store.runs.begin([one])
    return begun


def run(store: Store, one: Ask) -> Begun:
    """Begin a job, and keep it as its worker does a moment later."""
    begun = begin(store, one)
    assert one.lease is not None
    assert store.runs.keep(one.boot, [offer(one.job, tries=one.tries, lease=one.lease.name)])
    return begun


def end(one: Ask, begun: Begun, state: JobState = JobState.DONE) -> Finish:
    return Finish(job=one.job, tries=one.tries, state=state, ended_at=NOON, lease=LEASE.name, fence=begun.fence)


def held(job: str = "a") -> Held:
    return Held(
        message=message(job), lane="till", tries=0, not_before=NOON, waits_for=LEASE.name, reason="lost", held_at=NOON
    )


def kill(store: Store) -> None:
    """Do what the sweeper of dead workers does."""
    store.runs.lapse_all(BOOT)


def test_a_job_that_runs_is_kept_until_its_end(store: Store) -> None:
    one = ask()
    begun = begin(store, one)
    assert store.runs.keep(BOOT, [offer(key="run:1")]) == {FIRST}

    kept = store.runs.under_way(["a", "b"])["a"]
    assert (kept.start, kept.task, kept.lane, kept.lease, kept.key) == (FIRST, "sync", "till", "account:7", "run:1")
    assert kept.message == message("a")
    assert list(kept.message.headers) == ["id", "task"]

    store.runs.finish([end(one, begun)])
    assert store.runs.under_way(["a"]) == {}


def test_nothing_is_kept_of_one_that_has_not_begun_or_runs_without_its_lease(store: Store) -> None:
    begin(store, ask("plain", lease=None))
    begin(store, ask())
    begin(store, ask("waits"))
    offers = [offer("unknown"), offer("plain"), offer("waits"), offer(lease="account:8")]
    assert store.runs.keep(BOOT, offers) == frozenset()
    assert store.runs.under_way(["unknown", "plain", "waits", "a"]) == {}
    assert store.runs.keep(BOOT, []) == frozenset()


def test_nothing_is_kept_of_one_that_another_worker_has_by_now(store: Store) -> None:
    begin(store, ask())
    assert store.runs.keep(OTHER, [offer()]) == frozenset()
    kill(store)
    begin(store, ask(redelivered=True, boot=OTHER))
    assert store.runs.keep(BOOT, [offer()]) == frozenset()
    assert store.runs.keep(OTHER, [offer()]) == {Start("a", 0, 2)}


@pytest.mark.parametrize("state", [JobState.DONE, JobState.FAILED, JobState.QUEUED])
def test_what_is_offered_late_does_not_come_back_to_life(store: Store, state: JobState) -> None:
    one = ask()
    store.runs.finish([end(one, begin(store, one), state)])
    assert store.runs.keep(BOOT, [offer()]) == frozenset()
    assert store.runs.under_way(["a"]) == {}
    assert list(store.runs.leaseless(limit=9)) == []


def test_of_an_earlier_try_nothing_is_kept(store: Store) -> None:
    one = ask()
    store.runs.finish([end(one, begin(store, one), JobState.QUEUED)])
    begin(store, ask(tries=1))
    assert store.runs.keep(BOOT, [offer(), offer(tries=1), offer(tries=1)]) == {Start("a", 1, 1)}


def test_a_lease_that_has_lapsed_and_is_nobody_elses_keeps_nothing_from_being_kept(store: Store) -> None:
    begin(store, ask(lease=replace(LEASE, lives_for=-timedelta(hours=1))))
    assert store.runs.keep(BOOT, [offer()]) == {FIRST}
    assert list(store.runs.leaseless(limit=9)) == [FIRST]


def test_a_message_that_cannot_be_kept_is_left_away_and_the_others_are_kept(store: Store) -> None:
    for job in "abc":
        begin(store, ask(job, lease=replace(LEASE, name=f"account:{job}")))
    odd = replace(message("a"), headers={"id": "a", "share": float("nan")})
    offers = [
        offer("a", lease="account:a", message=odd),
        offer("b", lease="account:b", message=None),
        offer("c", lease="account:c", lane=None, message=message("c", b"x" * 3_000_000)),
    ]
    assert {start.job for start in store.runs.keep(BOOT, offers)} == {"a", "b", "c"}
    kept = store.runs.under_way("abc")
    assert (kept["a"].message, kept["b"].message) == (None, None)
    assert (kept["c"].lane, kept["c"].message) == (None, message("c", b"x" * 3_000_000))


def test_a_later_try_replaces_what_is_kept_and_the_end_of_an_earlier_one_leaves_it(store: Store) -> None:
    first = ask()
    begun = run(store, first)
    kill(store)
    begin(store, ask(tries=1, boot=OTHER))
    assert store.runs.keep(OTHER, [offer(tries=1, message=message("a", b"[[8], {}, {}]"))]) == {Start("a", 1, 1)}

    store.runs.finish([end(first, begun, JobState.QUEUED)])
    kept = store.runs.under_way(["a"])["a"]
    assert (kept.start, kept.message and kept.message.body) == (Start("a", 1, 1), b"[[8], {}, {}]")


def test_what_was_kept_of_an_earlier_start_is_none_of_the_next_ones(store: Store) -> None:
    run(store, ask())
    kill(store)
    begin(store, ask(redelivered=True, boot=OTHER))
    assert store.runs.under_way(["a"]) == {}
    assert store.runs.keep(OTHER, [offer()]) == {Start("a", 0, 2)}
    assert store.runs.under_way(["a"])["a"].start == Start("a", 0, 2)


def test_a_start_is_without_a_lease_once_its_worker_is_dead(store: Store) -> None:
    run(store, ask())
    assert list(store.runs.leaseless(limit=9)) == []
    kill(store)
    assert list(store.runs.leaseless(limit=9)) == [FIRST]
    assert list(store.runs.leaseless(limit=0)) == []


def test_a_lease_that_another_job_has_by_now_is_not_its_own(store: Store) -> None:
    run(store, ask())
    kill(store)
    begin(store, ask("b", boot=OTHER))
    assert list(store.runs.leaseless(limit=9)) == [FIRST]


def test_one_that_came_again_by_itself_waits_or_was_handed_back_is_not_under_way(store: Store) -> None:
    run(store, ask())
    begin(store, ask(redelivered=True, boot=OTHER))
    kill(store)
    assert list(store.runs.leaseless(limit=9)) == []

    run(store, ask("b", lease=replace(LEASE, name="account:8")))
    store.runs.hand_back([("b", 0)])
    kill(store)
    assert list(store.runs.leaseless(limit=9)) == []


def test_a_lost_one_waits_in_the_store_and_starts_as_the_next_attempt(store: Store) -> None:
    run(store, ask())
    kill(store)

    assert list(store.holds.take_back({FIRST: held()})) == ["a"]
    assert store.runs.runs(["a"])["a"] == Run(job="a", tries=0, attempts=1, state=JobState.HELD)
    assert store.holds.find(["a"]) == {"a": held()}
    assert list(store.runs.leaseless(limit=9)) == []
    again = begin(store, ask(released=True, boot=OTHER))
    assert again.admission == Admit(attempt=2, takes_lease=True)
    assert list(store.holds.take_back({})) == []


def test_it_is_taken_back_once(store: Store) -> None:
    run(store, ask())
    kill(store)
    assert list(store.holds.take_back({FIRST: held()})) == ["a"]
    assert list(store.holds.take_back({FIRST: held()})) == []


def _ends(store: Store, one: Ask, begun: Begun) -> None:
    store.runs.finish([end(one, begun)])


def _starts_again(store: Store, _one: Ask, _begun: Begun) -> None:
    begin(store, ask(redelivered=True, boot=OTHER))


@pytest.mark.parametrize("meanwhile", [_ends, _starts_again])
def test_one_that_has_ended_or_started_again_meanwhile_is_left_alone(store: Store, meanwhile: Meanwhile) -> None:
    one = ask()
    begun = run(store, one)
    kill(store)
    meanwhile(store, one, begun)

    assert list(store.holds.take_back({FIRST: held()})) == []
    assert store.holds.find(["a"]) == {}


def test_one_whose_lease_is_live_is_left_alone(store: Store) -> None:
    run(store, ask())
    assert list(store.holds.take_back({FIRST: held()})) == []
    assert store.runs.runs(["a"])["a"].state is JobState.RUNNING


def test_what_is_kept_goes_with_a_run_that_is_pruned(store: Store) -> None:
    one = ask()
    run(store, one)
    store.runs.finish([Finish(job="a", tries=0, state=JobState.DEAD, ended_at=NOON)])
    store.runs.prune(before=store.runs.now() + timedelta(minutes=1))
    assert store.runs.under_way(["a"]) == {}


def test_pruning_leaves_what_is_under_way_with_a_lease_and_without(store: Store) -> None:
    run(store, ask())
    store.runs.prune(before=NOON - timedelta(days=1))
    assert store.runs.under_way(["a"])["a"].start == FIRST
    kill(store)
    store.runs.prune(before=NOON - timedelta(days=1))
    assert list(store.runs.leaseless(limit=9)) == [FIRST]

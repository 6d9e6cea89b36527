"""What is kept of jobs under way, and how a lost one goes back to wait; the same in memory and in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from slackwater.core.admission import Admit, Ask, KeyRule, LeaseRule, Run
from slackwater.core.job import JobState
from slackwater.core.message import Held, Message
from slackwater.core.under_way import Start
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
    values |= {"lane": "till", "message": message(job)}
    return Ask(job=job, **values | given)


def begin(store: Store, one: Ask) -> Begun:
    (begun,) = store.runs.begin([one])
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


def test_the_message_is_kept_from_the_start_to_the_end(store: Store) -> None:
    one = ask(key=KeyRule(name="run:1"))
    begun = begin(store, one)

    kept = store.runs.under_way(["a", "b"])["a"]
    assert (kept.start, kept.task, kept.lane, kept.lease, kept.key) == (FIRST, "sync", "till", "account:7", "run:1")
    assert kept.message == message("a")
    assert list(kept.message.headers) == ["id", "task"]

    store.runs.finish([end(one, begun)])
    assert store.runs.under_way(["a"]) == {}


def test_nothing_is_kept_of_a_job_without_a_lease_or_without_a_message(store: Store) -> None:
    begin(store, ask("plain", lease=None))
    begin(store, ask("mute", message=None))
    assert store.runs.under_way(["plain", "mute"]) == {}


def test_a_message_that_cannot_be_kept_does_not_keep_its_job_from_starting(store: Store) -> None:
    odd = replace(message("a"), headers={"id": "a", "share": float("nan")})
    assert isinstance(begin(store, ask(message=odd)).admission, Admit)
    assert store.runs.under_way(["a"])["a"].message is None


def test_a_later_try_replaces_what_is_kept_and_the_end_of_an_earlier_one_leaves_it(store: Store) -> None:
    first = ask()
    begun = begin(store, first)
    kill(store)
    begin(store, ask(tries=1, message=message("a", b"[[8], {}, {}]"), boot=OTHER))

    store.runs.finish([end(first, begun, JobState.QUEUED)])
    kept = store.runs.under_way(["a"])["a"]
    assert (kept.start, kept.message and kept.message.body) == (Start("a", 1, 1), b"[[8], {}, {}]")


def test_a_start_is_without_a_lease_once_its_worker_is_dead(store: Store) -> None:
    begin(store, ask())
    assert list(store.runs.leaseless(limit=9)) == []
    kill(store)
    assert list(store.runs.leaseless(limit=9)) == [FIRST]
    assert list(store.runs.leaseless(limit=0)) == []


def test_a_lease_that_another_job_has_by_now_is_not_its_own(store: Store) -> None:
    begin(store, ask())
    kill(store)
    begin(store, ask("b", boot=OTHER))
    assert list(store.runs.leaseless(limit=9)) == [FIRST]


def test_one_that_came_again_by_itself_waits_or_was_handed_back_is_not_under_way(store: Store) -> None:
    begin(store, ask())
    begin(store, ask(redelivered=True, boot=OTHER))
    kill(store)
    assert list(store.runs.leaseless(limit=9)) == []

    begin(store, ask("b", lease=replace(LEASE, name="account:8")))
    store.runs.hand_back([("b", 0)])
    kill(store)
    assert list(store.runs.leaseless(limit=9)) == []


def test_a_lost_one_waits_in_the_store_and_starts_as_the_next_attempt(store: Store) -> None:
    begin(store, ask())
    kill(store)

    assert list(store.holds.take_back({FIRST: held()})) == ["a"]
    assert store.runs.runs(["a"])["a"] == Run(job="a", tries=0, attempts=1, state=JobState.HELD)
    assert store.holds.find(["a"]) == {"a": held()}
    assert list(store.runs.leaseless(limit=9)) == []
    again = begin(store, ask(released=True, boot=OTHER))
    assert again.admission == Admit(attempt=2, takes_lease=True)
    assert list(store.holds.take_back({})) == []


def test_it_is_taken_back_once(store: Store) -> None:
    begin(store, ask())
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
    begun = begin(store, one)
    kill(store)
    meanwhile(store, one, begun)

    assert list(store.holds.take_back({FIRST: held()})) == []
    assert store.holds.find(["a"]) == {}


def test_one_whose_lease_is_live_is_left_alone(store: Store) -> None:
    begin(store, ask())
    assert list(store.holds.take_back({FIRST: held()})) == []
    assert store.runs.runs(["a"])["a"].state is JobState.RUNNING


def test_what_is_kept_goes_with_a_run_that_is_pruned(store: Store) -> None:
    one = ask()
    begin(store, one)
    store.runs.finish([Finish(job="a", tries=0, state=JobState.DEAD, ended_at=NOON)])
    store.runs.prune(before=store.runs.now() + timedelta(minutes=1))
    assert store.runs.under_way(["a"]) == {}

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from slackwater.core.admission import (
    Admission,
    Admit,
    Ask,
    Bury,
    Found,
    Key,
    KeyRule,
    Lease,
    LeaseRule,
    Resolve,
    Run,
    Wait,
    WhenTaken,
    admit,
    announce,
    key_lease,
)
from slackwater.core.job import JobState

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
BOOT = UUID(int=1)


def ask(**given: Any) -> Ask:
    values: dict[str, Any] = {"job": "a", "tries": 0, "task": "sync", "boot": BOOT, "redelivered": False}
    return Ask(**values | given)


def lease(job: str, *, name: str = "account:7", live: bool = True) -> Lease:
    return Lease(name=name, job=job, boot=BOOT, fence=1, live=live)


def leased(when_taken: WhenTaken = WhenTaken.WAIT) -> LeaseRule:
    return LeaseRule(name="account:7", when_taken=when_taken, lives_for=MINUTE)


def key(job: str = "b", state: JobState = JobState.RUNNING, **given: Any) -> Key:
    return Key(name="run:1", job=job, state=state, **given)


def keyed(when_taken: WhenTaken = WhenTaken.SKIP, fresh_since: datetime | None = None) -> Ask:
    return ask(key=KeyRule(name="run:1", when_taken=when_taken, fresh_since=fresh_since))


def test_what_is_unknown_and_not_flagged_starts_as_the_first_attempt() -> None:
    assert admit(ask(), Found()) == Admit(attempt=1)


def test_what_is_flagged_and_unknown_had_a_start_that_left_no_row() -> None:
    assert admit(ask(redelivered=True), Found()) == Admit(attempt=2)


def test_attempts_count_from_one_again_for_each_try() -> None:
    assert admit(ask(tries=1), Found(run=Run(job="a", tries=0, attempts=3))) == Admit(attempt=1)
    assert admit(ask(tries=1, redelivered=True), Found(run=Run(job="a", tries=1, attempts=1))) == Admit(attempt=2)


def test_what_was_handed_back_is_no_new_attempt() -> None:
    run = Run(job="a", tries=0, attempts=3, handed_back=True)

    assert admit(ask(redelivered=True), Found(run=run)) == Admit(attempt=3)


def test_poison_is_buried_before_it_is_given_a_lease() -> None:
    run = Run(job="a", tries=0, attempts=3)

    assert admit(ask(redelivered=True, lease=leased()), Found(run=run, lease=lease("b"))) == Bury(
        attempts=3, reason="started 3 times without an end, at most 3 allowed"
    )


@pytest.mark.parametrize("state", [state for state in JobState if state.final])
def test_what_has_ended_ends_again(state: JobState) -> None:
    run = Run(job="a", tries=0, attempts=9, state=state)

    assert admit(ask(redelivered=True), Found(run=run)) == Resolve(
        to="a", state=state, reason=f"it has ended as {state}"
    )


def test_a_copy_of_an_earlier_try_starts_nothing() -> None:
    admission = admit(ask(redelivered=True), Found(run=Run(job="a", tries=1, attempts=1)))

    assert admission == Resolve(to="a", state=JobState.RUNNING, reason="a copy of try 0; try 1 has started")


def test_a_released_job_that_comes_twice_without_the_flag_starts_once() -> None:
    run = Run(job="a", tries=0, attempts=1)

    assert isinstance(admit(ask(released=True), Found(run=run)), Resolve)
    assert admit(ask(released=True, redelivered=True), Found(run=run)) == Admit(attempt=2)


def test_a_free_lease_is_taken_and_so_is_one_that_has_lapsed() -> None:
    for held in (None, lease("b", live=False), lease("a", live=False)):
        assert admit(ask(lease=leased()), Found(lease=held)) == Admit(attempt=1, takes_lease=True)


@pytest.mark.parametrize(
    ("policy", "admission"),
    [
        (WhenTaken.WAIT, Wait(on="account:7", reason="lease account:7: job b is under way")),
        (WhenTaken.LATER, Wait(on=None, reason="lease account:7: job b is under way")),
        (WhenTaken.SKIP, Resolve(to="b", state=JobState.RUNNING, reason="lease account:7: job b is under way")),
        (WhenTaken.REPLACE, Admit(attempt=1, takes_lease=True)),
    ],
)
def test_a_lease_that_another_has_is_met_by_policy(policy: WhenTaken, admission: Admission) -> None:
    assert admit(ask(lease=leased(policy)), Found(lease=lease("b"))) == admission


@pytest.mark.parametrize("policy", WhenTaken)
def test_a_second_delivery_waits_for_the_first_whatever_the_policy(policy: WhenTaken) -> None:
    admission = admit(ask(redelivered=True, lease=leased(policy)), Found(lease=lease("a")))

    assert isinstance(admission, Wait)
    assert admission.on == "account:7"


@pytest.mark.parametrize("again", [{"redelivered": True}, {"tries": 1}])
def test_what_was_replaced_waits_for_its_successor_and_does_not_replace_it_in_turn(again: dict[str, Any]) -> None:
    admission = admit(ask(**again, lease=leased(WhenTaken.REPLACE)), Found(lease=lease("b")))

    assert admission == Wait(on="account:7", reason="lease account:7: job b has it, and came later")


@pytest.mark.parametrize("policy", WhenTaken)
def test_while_a_holder_commits_nobody_takes_its_lease(policy: WhenTaken) -> None:
    admission = admit(ask(lease=leased(policy)), Found(lease=lease("b", live=False), lease_locked=True))

    assert admission == Wait(on="account:7", reason="lease account:7: its holder commits")


def test_a_key_that_is_free_or_its_own_is_taken() -> None:
    for known in (None, key("a"), key(state=JobState.FAILED), key(state=JobState.QUEUED)):
        assert admit(keyed(), Found(key=known)) == Admit(attempt=1, takes_key=True)


def test_a_next_try_of_what_an_earlier_delivery_has_done_meanwhile_starts_nothing() -> None:
    own = key(job="a", state=JobState.DONE, ended_at=NOON)
    waits = Run(job="a", tries=1, attempts=0, state=JobState.HELD)
    admission = admit(ask(tries=1, key=KeyRule(name="run:1")), Found(run=waits, key=own))
    assert admission == Resolve(to="a", state=JobState.DONE, reason="key run:1: it has done that itself")


def test_a_repeat_of_what_is_done_resolves_to_it() -> None:
    admission = admit(keyed(), Found(key=key(state=JobState.DONE, ended_at=NOON)))

    assert admission == Resolve(to="b", state=JobState.DONE, reason="key run:1: done already")


def test_a_success_counts_only_as_long_as_it_is_fresh() -> None:
    done = Found(key=key(state=JobState.DONE, ended_at=NOON))

    assert isinstance(admit(keyed(fresh_since=NOON), done), Resolve)
    assert isinstance(admit(keyed(fresh_since=NOON + MINUTE), done), Admit)
    assert isinstance(admit(keyed(fresh_since=NOON), Found(key=key(state=JobState.DONE))), Admit)


@pytest.mark.parametrize(
    ("policy", "admission"),
    [
        (WhenTaken.SKIP, Resolve(to="b", state=JobState.RUNNING, reason="key run:1: job b is under way")),
        (WhenTaken.WAIT, Wait(on="account:7", reason="key run:1: job b is under way")),
        (WhenTaken.LATER, Wait(on=None, reason="key run:1: job b is under way")),
    ],
)
def test_a_key_whose_job_is_under_way_is_met_by_policy(policy: WhenTaken, admission: Admission) -> None:
    assert admit(keyed(policy), Found(key=key(), key_holder=lease("b"))) == admission


@pytest.mark.parametrize("holder", [None, lease("b", live=False), lease("c")])
def test_a_key_whose_job_has_lost_its_lease_is_taken_over(holder: Lease | None) -> None:
    assert admit(keyed(), Found(key=key(), key_holder=holder)) == Admit(attempt=1, takes_key=True)


def test_a_key_is_resolved_before_anybody_waits_for_a_lease() -> None:
    one = ask(key=KeyRule(name="run:1"), lease=leased())
    found = Found(key=key(state=JobState.DONE, ended_at=NOON), lease=lease("c"))

    assert isinstance(admit(one, found), Resolve)


def test_at_dispatch_a_key_blocks_while_pending_under_way_or_fresh() -> None:
    rule = KeyRule(name="run:1")
    pending = key(state=JobState.QUEUED, announced_at=NOON)

    assert announce(rule, None, None, stale_before=NOON) is None
    assert announce(rule, pending, None, stale_before=NOON) == Resolve(
        to="b", state=JobState.QUEUED, reason="key run:1: pending"
    )
    assert announce(rule, key(), lease("b"), stale_before=NOON) == Resolve(
        to="b", state=JobState.RUNNING, reason="key run:1: under way"
    )
    assert announce(rule, key(state=JobState.DONE), None, stale_before=NOON) == Resolve(
        to="b", state=JobState.DONE, reason="key run:1: done already"
    )


def test_at_dispatch_a_key_does_not_block_once_its_message_may_be_lost_or_its_job_failed() -> None:
    rule = KeyRule(name="run:1")
    stale = key(state=JobState.QUEUED, announced_at=NOON - MINUTE)

    for known, holder in ((stale, None), (key(), None), (key(), lease("b", live=False))):
        assert announce(rule, known, holder, stale_before=NOON) is None
    assert announce(rule, key(state=JobState.FAILED), None, stale_before=NOON) is None


def test_a_keys_own_lease_is_named_after_it() -> None:
    assert key_lease("run:1") == "key:run:1"

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from slackwater.adapters.memory import MemoryStore
from slackwater.core.admission import (
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
)
from slackwater.core.admissions import Known, admit_each
from slackwater.core.job import JobState

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
LIVES_FOR = timedelta(seconds=30)
JOBS = st.sampled_from(["a", "b", "c"])
BOOTS = st.sampled_from([UUID(int=1), UUID(int=2)])
INSTANTS = st.none() | st.integers(-3, 3).map(lambda minutes: NOON + timedelta(minutes=minutes))
NAMES = st.sampled_from(["x", "y"])
POLICIES = st.sampled_from(WhenTaken)
KEY_POLICIES = st.sampled_from([one for one in WhenTaken if one is not WhenTaken.REPLACE])
KEY_RULES = st.builds(KeyRule, name=NAMES, fresh_since=INSTANTS, when_taken=KEY_POLICIES)
LEASE_RULES = st.builds(LeaseRule, name=NAMES, when_taken=POLICIES, lives_for=st.just(LIVES_FOR))
ASKS = st.builds(
    Ask,
    job=JOBS,
    tries=st.integers(0, 2),
    task=st.just("t"),
    boot=BOOTS,
    redelivered=st.booleans(),
    released=st.booleans(),
    attempt_limit=st.integers(1, 4),
    key=st.none() | KEY_RULES,
    lease=st.none() | LEASE_RULES,
)
RUNS = st.builds(
    Run,
    job=JOBS,
    tries=st.integers(0, 2),
    attempts=st.integers(1, 4),
    handed_back=st.booleans(),
    state=st.sampled_from(JobState),
)
KEYS = st.builds(
    Key,
    name=NAMES,
    job=JOBS,
    state=st.sampled_from([JobState.QUEUED, JobState.RUNNING, JobState.DONE, JobState.FAILED]),
    lease=st.none() | NAMES,
    announced_at=INSTANTS,
    ended_at=INSTANTS,
)
LEASES = st.builds(Lease, name=NAMES, job=JOBS, boot=BOOTS, fence=st.integers(1, 99), live=st.booleans())
FOUND = st.builds(
    Found,
    run=st.none() | RUNS,
    key=st.none() | KEYS,
    key_holder=st.none() | LEASES,
    lease=st.none() | LEASES,
    lease_locked=st.booleans(),
)


def of_job(run: Run | None, job: str) -> Run | None:
    return run if run is None else Run(**vars(run) | {"job": job})


@given(ASKS, FOUND)
def test_a_body_starts_only_within_its_limit_and_never_after_an_end(ask: Ask, found: Found) -> None:
    admission = admit(ask, Found(**vars(found) | {"run": of_job(found.run, ask.job)}))

    if isinstance(admission, Admit):
        assert 1 <= admission.attempt <= ask.attempt_limit
        assert found.run is None or not found.run.state.final
        assert found.run is None or ask.tries >= found.run.tries
        assert (admission.takes_key, admission.takes_lease) == (ask.key is not None, ask.lease is not None)
    if isinstance(admission, Bury):
        assert admission.attempts >= ask.attempt_limit


@given(ASKS, FOUND)
def test_nobody_takes_a_live_lease_but_to_replace_another_and_never_a_locked_one(ask: Ask, found: Found) -> None:
    if not isinstance(admit(ask, found), Admit) or ask.lease is None:
        return

    assert not found.lease_locked
    if found.lease is not None and found.lease.live:
        assert ask.lease.when_taken is WhenTaken.REPLACE
        assert found.lease.job != ask.job


@given(ASKS, FOUND)
def test_nobody_starts_beside_the_job_of_his_key_or_after_its_fresh_success(ask: Ask, found: Found) -> None:
    key, holder = found.key, found.key_holder
    if not isinstance(admit(ask, found), Admit) or ask.key is None or key is None or key.job == ask.job:
        return

    assert not (key.state is JobState.RUNNING and holder is not None and holder.live and holder.job == key.job)
    assert not (key.state is JobState.DONE and ask.key.fresh_since is None)


@given(ASKS, FOUND)
def test_what_is_flagged_is_never_ended_for_a_copy_that_has_not_ended(ask: Ask, found: Found) -> None:
    """The delivery may be the last message of its job: its own end, that of its key, or a later try alone ends it."""
    run = of_job(found.run, ask.job)
    admission = admit(ask, Found(**vars(found) | {"run": run}))

    if isinstance(admission, Resolve) and admission.to == ask.job and ask.redelivered:
        key = found.key if ask.key is not None else None
        did_it = key is not None and key.job == ask.job and key.state is JobState.DONE
        assert did_it or (run is not None and (run.state.final or run.tries > ask.tries))


@given(KEY_RULES, KEYS, st.none() | LEASES, INSTANTS)
def test_what_is_not_published_is_left_to_the_job_that_has_the_key(
    rule: KeyRule, key: Key, holder: Lease | None, stale_before: datetime | None
) -> None:
    other = announce(rule, key, holder, stale_before=stale_before or NOON)

    assert other is None or (other.to == key.job and key.state is not JobState.FAILED)


@given(st.lists(ASKS, max_size=8))
def test_in_a_batch_fences_rise_and_a_lease_is_taken_twice_only_to_replace(asks: list[Ask]) -> None:
    result = admit_each(asks, Known(), fences=count(1))
    fences = [fence for _, fence in result.decided if fence is not None]
    took = [ask for ask, (_, fence) in zip(asks, result.decided, strict=True) if fence is not None and ask.lease]
    by_name = Counter(ask.lease.name for ask in took if ask.lease and ask.lease.when_taken is not WhenTaken.REPLACE)

    assert fences == sorted(set(fences))
    assert all(number <= 1 for number in by_name.values())
    assert {name: one.lease.fence for name, one in result.leases.items()} == {
        ask.lease.name: fence for ask, (_, fence) in zip(asks, result.decided, strict=True) if fence and ask.lease
    }


@given(st.lists(ASKS, max_size=8), st.integers(0, 8))
def test_a_batch_is_decided_as_if_each_came_alone(asks: list[Ask], cut: int) -> None:
    together, apart = MemoryStore(now=lambda: NOON), MemoryStore(now=lambda: NOON)

    at_once = list(together.runs.begin(asks))
    in_two = [*apart.runs.begin(asks[:cut]), *apart.runs.begin(asks[cut:])]

    assert at_once == in_two
    assert together.runs.runs("abc") == apart.runs.runs("abc")
    for name in ("x", "y"):
        assert together.runs.key(name) == apart.runs.key(name)
        assert together.runs.lease(name) == apart.runs.lease(name)


@given(ASKS, FOUND)
def test_who_waits_waits_for_a_lease_of_another_or_of_his_own_earlier_delivery(ask: Ask, found: Found) -> None:
    admission = admit(ask, found)

    if isinstance(admission, Wait) and admission.on is not None:
        assert found.lease_locked or any(one is not None and one.live for one in (found.lease, found.key_holder))

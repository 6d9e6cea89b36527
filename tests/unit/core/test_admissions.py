from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import UUID

from slackwater.core.admission import Admit, Ask, Key, KeyRule, Lease, LeaseRule, Resolve, Run, Wait
from slackwater.core.admissions import Known, admit_each, announce_each, key_state
from slackwater.core.job import JobState

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
BOOT = UUID(int=1)


def ask(job: str, *, key: str | None = None, lease: str | None = None) -> Ask:
    return Ask(
        job=job,
        tries=0,
        task="t",
        boot=BOOT,
        redelivered=False,
        key=None if key is None else KeyRule(name=key),
        lease=None if lease is None else LeaseRule(name=lease, lives_for=timedelta(seconds=9)),
    )


def held(name: str, job: str, *, live: bool = True) -> Lease:
    return Lease(name=name, job=job, boot=BOOT, fence=1, live=live)


def running(job: str, lease: str) -> Key:
    return Key(name="k", job=job, state=JobState.RUNNING, lease=lease)


def test_all_that_an_admission_takes_is_to_be_written() -> None:
    result = admit_each([ask("a", key="k", lease="l")], Known(), fences=count(7))

    assert result.decided == ((Admit(attempt=1, takes_key=True, takes_lease=True), 7),)
    assert result.runs == {"a": Run(job="a", tries=0, attempts=1)}
    assert result.keys == {"k": running("a", "l")}
    assert result.leases["l"].lease == Lease(name="l", job="a", boot=BOOT, fence=7, live=True)
    assert result.leases["l"].lives_for == timedelta(seconds=9)
    assert result.ended == frozenset()


def test_who_waits_spends_no_fence_and_is_written_as_held() -> None:
    asks = [ask("a", lease="l"), ask("b", lease="l"), ask("c", lease="m")]
    result = admit_each(asks, Known(), fences=[7, 8])

    assert [fence for _, fence in result.decided] == [7, None, 8]
    states = {job: (run.state, run.attempts) for job, run in result.runs.items()}
    assert states == {
        "a": (JobState.RUNNING, 1),
        "b": (JobState.HELD, 0),
        "c": (JobState.RUNNING, 1),
    }


def test_a_lapsed_lease_of_who_loses_its_key_is_ended() -> None:
    known = Known(keys={"k": running("a", "old")}, leases={"old": held("old", "a", live=False)})

    assert admit_each([ask("b", key="k", lease="new")], known, fences=[7]).ended == {"old"}
    assert admit_each([ask("b", key="k", lease="old")], known, fences=[7]).ended == frozenset()
    announced = announce_each([("b", KeyRule(name="k"))], known, at=NOON, stale_before=NOON)
    assert (announced.jobs, announced.ended) == (("b",), frozenset({"old"}))


def test_a_lapsed_holder_that_commits_still_has_its_key() -> None:
    leases = {"old": held("old", "a", live=False)}
    known = Known(keys={"k": running("a", "old")}, leases=leases, locked=frozenset({"old"}))
    result = admit_each([ask("b", key="k", lease="new")], known, fences=[7])

    assert isinstance(result.decided[0][0], Resolve)
    assert announce_each([("b", KeyRule(name="k"))], known, at=NOON, stale_before=NOON).jobs == ("a",)


def test_a_lease_of_another_job_says_nothing_about_a_key() -> None:
    known = Known(keys={"k": running("a", "l")}, leases={"l": held("l", "c")})
    result = admit_each([ask("b", key="k")], known, fences=[])

    assert isinstance(result.decided[0][0], Admit)
    assert result.ended == frozenset()


def test_a_locked_lease_makes_wait() -> None:
    result = admit_each([ask("a", lease="l")], Known(locked=frozenset({"l"})), fences=[7])

    assert isinstance(result.decided[0][0], Wait)


def test_announcements_see_those_before_them() -> None:
    rule = KeyRule(name="k")
    result = announce_each([("a", rule), ("b", rule)], Known(), at=NOON, stale_before=NOON)

    assert result.jobs == ("a", "a")
    assert result.keys == {"k": Key(name="k", job="a", state=JobState.QUEUED, announced_at=NOON)}


def test_a_key_is_queued_done_or_failed_by_what_its_job_has_come_to() -> None:
    states = {state: key_state(state) for state in JobState if state is not JobState.RUNNING}

    assert {state for state, of_key in states.items() if of_key is JobState.QUEUED} == {JobState.HELD, JobState.QUEUED}
    assert {state for state, of_key in states.items() if of_key is JobState.DONE} == {JobState.DONE}
    assert set(states.values()) == {JobState.QUEUED, JobState.DONE, JobState.FAILED}

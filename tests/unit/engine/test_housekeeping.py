"""What the built-in sweepers do with what the store knows."""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from tests.unit.engine.conftest import NOON, KnownStates, StillClock

from slackwater import Occurrence, OccurrenceState, hours, minutes
from slackwater.adapters.memory import MemoryStore
from slackwater.core.dead_letter import DeadLetter
from slackwater.core.job import JobState
from slackwater.core.message import Held, Message
from slackwater.engine.housekeeping import LateHolds, Retention, StuckOccurrences


def held(job: str, *, start_by_in: timedelta) -> Held:
    message = Message(
        job=job, task="sync", queue="till", headers={}, body=b"[]", content_type="application/json", content_encoding=""
    )
    return Held(
        message=message,
        lane="till",
        tries=0,
        not_before=NOON,
        start_by=NOON + start_by_in,
        reason="retry",
        held_at=NOON,
    )


@pytest.fixture
def sweep(clock: StillClock) -> Occurrence:
    return Occurrence(
        id=uuid4(), entry="sweep", task="sweep", lane="till", due_at=NOON - hours(2), start_by=NOON - hours(1)
    )


def stuck(store: MemoryStore, clock: StillClock, **known: JobState) -> StuckOccurrences:
    return StuckOccurrences(store=store, results=KnownStates(known=dict(known)), clock=clock, grace=minutes(15))


def admit(store: MemoryStore, occurrence: Occurrence, *jobs: str) -> None:
    store.occurrences.admit([occurrence], watermarks={})
    store.occurrences.advance(occurrence.id, to=OccurrenceState.QUEUED, at=NOON)
    store.fan_outs.add(occurrence.id, jobs)


def state_of(store: MemoryStore, occurrence: Occurrence) -> tuple[OccurrenceState, str | None]:
    found = store.occurrences.get(occurrence.id)
    assert found is not None
    return found.state, found.reason


def test_a_held_job_whose_start_by_has_passed_is_told_and_dropped(clock: StillClock) -> None:
    store = MemoryStore()
    store.holds.hold([held("late", start_by_in=-minutes(1)), held("in time", start_by_in=minutes(1))])
    told: list[str] = []
    swept = LateHolds(store=store, clock=clock, expire=lambda one: told.append(one.job)).sweep()
    assert (told, swept.found_count) == (["late"], 1)
    assert set(store.holds.find(["late", "in time"])) == {"in time"}


def test_an_occurrence_whose_job_nobody_knows_is_closed_as_failed_with_its_job_named(
    clock: StillClock, sweep: Occurrence
) -> None:
    store = MemoryStore()
    admit(store, sweep)
    assert stuck(store, clock).sweep().found_count == 1
    state, reason = state_of(store, sweep)
    assert (state, str(sweep.id) in str(reason)) == (OccurrenceState.FAILED, True)


def test_one_that_may_still_be_told_of_is_left_alone(clock: StillClock, sweep: Occurrence) -> None:
    store = MemoryStore()
    admit(store, replace(sweep, start_by=NOON - minutes(14)))
    assert stuck(store, clock).sweep().found_count == 0
    assert state_of(store, sweep)[0] is OccurrenceState.QUEUED


def test_a_fan_out_with_missing_jobs_is_closed_and_the_first_five_are_named(
    clock: StillClock, sweep: Occurrence
) -> None:
    store = MemoryStore()
    admit(store, sweep, *(f"job-{number}" for number in range(8)))
    known = {"job-0": JobState.DONE, str(sweep.id): JobState.DONE}
    store.fan_outs.settle({"job-0": JobState.DONE}, at=NOON)
    assert stuck(store, clock, **known).sweep().recovered_count == 1
    state, reason = state_of(store, sweep)
    assert state is OccurrenceState.FAILED
    assert reason == ("7 jobs of its fan-out had not started by start_by: job-1, job-2, job-3, job-4, job-5 and 2 more")


@pytest.mark.parametrize("going_on", [JobState.RUNNING, JobState.HELD])
def test_a_fan_out_that_goes_on_is_left_alone(clock: StillClock, sweep: Occurrence, going_on: JobState) -> None:
    store = MemoryStore()
    admit(store, sweep, "slow", "missing")
    assert stuck(store, clock, **{str(sweep.id): JobState.DONE, "slow": going_on}).sweep().found_count == 0
    assert state_of(store, sweep)[0] is OccurrenceState.QUEUED


def test_retention_deletes_old_letters_and_says_how_many(clock: StillClock) -> None:
    store = MemoryStore()
    for job, age in (("old", timedelta(days=31)), ("new", timedelta(days=29))):
        letter = DeadLetter(
            job=job,
            task="sync",
            lane="till",
            state=JobState.DEAD,
            cause="poison",
            reason="poison",
            attempts=3,
            tries=1,
            buried_at=NOON - age,
        )
        store.dead_letters.bury([letter], full_per_cause=10)
    retention = Retention(
        store=store, clock=clock, keys_kept_for=timedelta(days=7), letters_kept_for=timedelta(days=30)
    )
    assert retention.sweep().note == "0 runs, keys and leases, 1 dead letters, 0 groups and chords deleted"
    assert store.dead_letters.get("old") is None
    assert store.dead_letters.get("new") is not None

"""An occurrence ends when its parent and all its jobs have."""

import pytest
from tests.unit.engine.conftest import NOON, KnownStates, StillClock

from slackwater import JobState, Occurrence, OccurrenceState, minutes
from slackwater.adapters.memory import MemoryStore
from slackwater.core.schedule import occurrence_id
from slackwater.engine.settle import Settler

ID = occurrence_id("sweep", NOON)
PARENT = str(ID)


@pytest.fixture
def results(store: MemoryStore) -> KnownStates:
    """An occurrence that is published, with two jobs of a fan-out."""
    one = Occurrence(id=ID, entry="sweep", task="sweep", due_at=NOON, start_by=NOON + minutes(5))
    store.occurrences.admit([one], watermarks={})
    store.occurrences.advance(ID, to=OccurrenceState.QUEUED, at=NOON)
    store.fan_outs.add(ID, ["a", "b"])
    return KnownStates()


@pytest.fixture
def settler(store: MemoryStore, results: KnownStates, clock: StillClock) -> Settler:
    return Settler(occurrences=store.occurrences, fan_outs=store.fan_outs, results=results, clock=clock)


def seen(store: MemoryStore) -> tuple[OccurrenceState, str | None]:
    found = store.occurrences.get(ID)
    assert found is not None
    return found.state, found.reason


@pytest.mark.parametrize(
    ("known", "state"),
    [
        ({}, OccurrenceState.QUEUED),
        ({PARENT: JobState.RUNNING}, OccurrenceState.RUNNING),
        ({PARENT: JobState.DONE}, OccurrenceState.RUNNING),
        ({PARENT: JobState.DONE, "a": JobState.DONE, "b": JobState.RUNNING}, OccurrenceState.RUNNING),
        ({PARENT: JobState.RUNNING, "a": JobState.DONE, "b": JobState.DONE}, OccurrenceState.RUNNING),
        ({PARENT: JobState.FAILED, "a": JobState.DONE}, OccurrenceState.RUNNING),
    ],
)
def test_it_stays_open_while_its_parent_or_one_of_its_jobs_is(
    settler: Settler, store: MemoryStore, results: KnownStates, known: dict[str, JobState], state: OccurrenceState
) -> None:
    results.known |= known
    assert settler.settle() == 1
    assert seen(store) == (state, None)


@pytest.mark.parametrize(
    ("parent", "a", "b", "end"),
    [
        (JobState.DONE, JobState.DONE, JobState.DONE, (OccurrenceState.DONE, None)),
        (JobState.DONE, JobState.DONE, JobState.FAILED, (OccurrenceState.FAILED, "1 of 2 jobs failed")),
        (JobState.DONE, JobState.EXPIRED, JobState.EXPIRED, (OccurrenceState.EXPIRED, "2 of 2 jobs expired")),
        (JobState.FAILED, JobState.DONE, JobState.DONE, (OccurrenceState.FAILED, "its parent job ended as failed")),
        (JobState.EXPIRED, JobState.DONE, JobState.DONE, (OccurrenceState.EXPIRED, "its parent job ended as expired")),
    ],
)
def test_it_ends_as_its_parent_and_jobs_did(
    settler: Settler,
    store: MemoryStore,
    results: KnownStates,
    *,
    parent: JobState,
    a: JobState,
    b: JobState,
    end: tuple[OccurrenceState, str | None],
) -> None:
    results.known |= {PARENT: parent, "a": a, "b": b}
    assert settler.settle() == 0
    assert seen(store) == end
    assert not store.fan_outs.unsettled(ID, after="", limit=10)

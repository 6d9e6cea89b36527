from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from threading import Barrier
from types import MappingProxyType
from uuid import UUID, uuid4

import pytest

from slackwater.core.job import JobState
from slackwater.core.occurrence import Occurrence, OccurrenceState
from slackwater.errors import ScheduleError
from slackwater.ports import Store

DUE_AT = datetime(2026, 3, 29, 0, 30, 0, 123456, tzinfo=UTC)
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def occurrence(entry: str = "sync", *, due_at: datetime = DUE_AT, lane: str | None = None) -> Occurrence:
    return Occurrence(
        id=uuid4(), entry=entry, task=f"{entry}_task", lane=lane, due_at=due_at, start_by=due_at + timedelta(hours=2)
    )


def admitted(store: Store, *occurrences: Occurrence) -> Occurrence:
    store.occurrences.admit(occurrences, watermarks={})
    return occurrences[0]


def seen(store: Store, occurrence: UUID) -> Occurrence:
    found = store.occurrences.get(occurrence)
    assert found is not None
    return found


def test_an_occurrence_comes_back_as_it_was_admitted(store: Store) -> None:
    one = replace(
        occurrence(lane="network"),
        args=(1, "Müller", None, 2.5, date(2026, 1, 1)),
        kwargs=MappingProxyType({"zebra": [1, {"b": 2, "a": 1}], "apple": True}),
        elastic=True,
        state=OccurrenceState.MISSED,
        reason="found after its window had closed",
    )

    assert store.occurrences.admit([one], watermarks={}) == {one.id}

    found = seen(store, one.id)
    assert found == one
    assert list(found.kwargs) == ["zebra", "apple"]


def test_instants_come_back_in_utc(store: Store) -> None:
    berlin = timezone(timedelta(hours=2))
    one = admitted(store, occurrence(due_at=DUE_AT.astimezone(berlin)))

    found = seen(store, one.id)

    assert found.due_at == DUE_AT
    assert found.due_at.utcoffset() == timedelta(0)


def test_arguments_that_are_not_json_are_refused_with_the_name_of_the_entry(store: Store) -> None:
    with pytest.raises(ScheduleError, match="'sync'"):
        store.occurrences.admit([replace(occurrence(), args=(object(),))], watermarks={"sync": NOW})

    assert store.occurrences.watermarks() == {}


def test_changing_what_was_given_or_what_came_back_changes_nothing_kept(store: Store) -> None:
    accounts = [1]
    one = admitted(store, replace(occurrence(), args=(accounts,)))

    accounts.append(2)
    seen(store, one.id).args[0].append(3)

    assert seen(store, one.id).args == ([1],)


def test_only_the_first_of_one_entry_and_due_instant_is_new(store: Store) -> None:
    first, twin, other = occurrence(), occurrence(), occurrence(due_at=DUE_AT + SECOND)

    assert store.occurrences.admit([first], watermarks={}) == {first.id}
    assert store.occurrences.admit([twin, other, other], watermarks={}) == {other.id}
    assert store.occurrences.get(twin.id) is None


def test_an_occurrence_that_is_admitted_again_stays_as_it_has_become(store: Store) -> None:
    one = admitted(store, occurrence())
    store.occurrences.advance(one.id, to=OccurrenceState.RUNNING, at=NOW)

    assert store.occurrences.admit([one], watermarks={}) == frozenset()
    assert seen(store, one.id).state is OccurrenceState.RUNNING


def test_two_who_admit_the_same_at_once_share_them_out(store: Store) -> None:
    ours = [occurrence(f"entry_{number}") for number in range(60)]
    start = Barrier(2)

    def admit(occurrences: list[Occurrence]) -> list[frozenset[UUID]]:
        shares = []
        for begin in range(0, 60, 6):
            start.wait(timeout=20)
            batch = occurrences[begin : begin + 6]
            shares.append(store.occurrences.admit(batch, watermarks={one.entry: one.due_at for one in batch}))
        return shares

    with ThreadPoolExecutor(2) as threads:
        # The second goes through each batch backwards: the order of a batch must not matter.
        backwards = [one for begin in range(0, 60, 6) for one in reversed(ours[begin : begin + 6])]
        one, other = threads.map(admit, [ours, backwards])

    assert [share & rival for share, rival in zip(one, other, strict=True)] == [frozenset()] * 10
    assert frozenset().union(*one, *other) == {occurrence.id for occurrence in ours}


def test_watermarks_never_go_back(store: Store) -> None:
    store.occurrences.admit([], watermarks={"sync": NOW, "audit": NOW})
    store.occurrences.admit([], watermarks={"sync": NOW - SECOND, "audit": NOW + SECOND})

    assert store.occurrences.watermarks() == {"sync": NOW, "audit": NOW + SECOND}


def test_admitting_nothing_is_no_error(store: Store) -> None:
    assert store.occurrences.admit([], watermarks={}) == frozenset()
    assert store.occurrences.watermarks() == {}


def test_each_state_stamps_its_instant_once(store: Store) -> None:
    one = admitted(store, occurrence())
    onward = [OccurrenceState.QUEUED, OccurrenceState.RUNNING, OccurrenceState.DONE]

    for number, state in enumerate(onward):
        assert store.occurrences.advance(one.id, to=state, at=NOW + number * SECOND)
        assert store.occurrences.advance(one.id, to=state, at=NOW + timedelta(hours=1))

    found = seen(store, one.id)
    assert found.state is OccurrenceState.DONE
    assert [found.published_at, found.started_at, found.ended_at] == [NOW, NOW + SECOND, NOW + 2 * SECOND]


def test_an_occurrence_never_goes_back(store: Store) -> None:
    one = admitted(store, occurrence())
    store.occurrences.advance(one.id, to=OccurrenceState.RUNNING, at=NOW)

    assert not store.occurrences.advance(one.id, to=OccurrenceState.QUEUED, at=NOW)
    assert not store.occurrences.advance(one.id, to=OccurrenceState.DUE, at=NOW)
    found = seen(store, one.id)
    assert (found.state, found.published_at) == (OccurrenceState.RUNNING, None)


@pytest.mark.parametrize("final", [state for state in OccurrenceState if state.final])
def test_a_final_state_is_never_left(store: Store, final: OccurrenceState) -> None:
    one = admitted(store, occurrence())
    store.occurrences.advance(one.id, to=final, at=NOW, reason="as it was")

    moved = {
        to for to in OccurrenceState if store.occurrences.advance(one.id, to=to, at=NOW + SECOND, reason="another")
    }

    assert moved == {final}
    found = seen(store, one.id)
    assert (found.state, found.reason, found.ended_at) == (final, "as it was", NOW)


def test_a_reason_belongs_to_the_state_that_it_came_with(store: Store) -> None:
    one = admitted(store, occurrence())

    store.occurrences.advance(one.id, to=OccurrenceState.QUEUED, at=NOW, reason="published late")
    assert seen(store, one.id).reason == "published late"
    store.occurrences.advance(one.id, to=OccurrenceState.RUNNING, at=NOW)
    assert seen(store, one.id).reason is None


def test_of_two_who_end_an_occurrence_differently_at_once_one_succeeds(store: Store) -> None:
    ours = [occurrence(f"entry_{number}") for number in range(10)]
    admitted(store, *ours)
    start = Barrier(2)

    def end(to: OccurrenceState) -> list[bool]:
        moved = []
        for one in ours:
            start.wait(timeout=20)
            moved.append(store.occurrences.advance(one.id, to=to, at=NOW))
        return moved

    with ThreadPoolExecutor(2) as threads:
        done, failed = threads.map(end, [OccurrenceState.DONE, OccurrenceState.FAILED])

    assert [mine + theirs for mine, theirs in zip(done, failed, strict=True)] == [1] * 10
    assert [seen(store, one.id).state is OccurrenceState.DONE for one in ours] == done


def test_an_unknown_occurrence_is_none_and_cannot_move(store: Store) -> None:
    assert store.occurrences.get(uuid4()) is None
    assert not store.occurrences.advance(uuid4(), to=OccurrenceState.QUEUED, at=NOW)


def test_open_ones_come_oldest_first_and_final_ones_not_at_all(store: Store) -> None:
    late, early, ended, between = (
        occurrence(entry, due_at=DUE_AT + offset * SECOND)
        for entry, offset in [("late", 3), ("early", 0), ("ended", 1), ("between", 2)]
    )
    admitted(store, late, early, ended, between)
    store.occurrences.advance(between.id, to=OccurrenceState.RUNNING, at=NOW)
    store.occurrences.advance(late.id, to=OccurrenceState.QUEUED, at=NOW)
    store.occurrences.advance(ended.id, to=OccurrenceState.EXPIRED, at=NOW)

    assert [one.entry for one in store.occurrences.open()] == ["early", "between", "late"]


def test_since_gives_all_from_an_instant_on_by_instant_then_entry(store: Store) -> None:
    names = ["b", "a", "Z", "ä", "a_b"]
    admitted(store, *(occurrence(name) for name in names), occurrence("later", due_at=DUE_AT + SECOND))
    admitted(store, occurrence("earlier", due_at=DUE_AT - SECOND))

    assert [one.entry for one in store.occurrences.since(DUE_AT)] == [*sorted(names), "later"]


def test_jobs_are_counted_by_state_wherever_an_occurrence_is_read(store: Store) -> None:
    one, childless = occurrence("one"), occurrence("two")
    admitted(store, one, childless)
    store.fan_outs.add(one.id, [f"job-{number}" for number in range(5)])
    store.fan_outs.settle({"job-0": JobState.DONE, "job-1": JobState.DONE, "job-2": JobState.EXPIRED}, at=NOW)
    counted = {JobState.DONE: 2, JobState.EXPIRED: 1, JobState.QUEUED: 2}

    assert seen(store, one.id).jobs == counted
    assert [found.jobs for found in store.occurrences.open()] == [counted, {}]
    assert [found.jobs for found in store.occurrences.since(DUE_AT)] == [counted, {}]

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from slackwater.core.cadence import crontab, every
from slackwater.core.occurrence import OccurrenceState
from slackwater.core.schedule import MISSED_KEPT, Due, Entry, Schedule, look, occurrence_id
from slackwater.errors import ScheduleError

MIDNIGHT = datetime(2026, 11, 29, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOURLY = Entry(every(HOUR), expires=HOUR / 2, args=(1,), kwargs={"full": True}, elastic=True)


def found(*, since: datetime, now: datetime, entry: Entry = HOURLY) -> Due:
    return look(Schedule(entries={"sync": entry}), "sync", since=since, now=now, task_lane="network")


def test_an_occurrence_carries_all_that_its_entry_says() -> None:
    (one,) = found(since=MIDNIGHT, now=MIDNIGHT + HOUR).occurrences

    assert one.id == occurrence_id("sync", MIDNIGHT + HOUR)
    assert (one.entry, one.task, one.lane, one.elastic) == ("sync", "sync", "network", True)
    assert (one.args, dict(one.kwargs)) == ((1,), {"full": True})
    assert (one.due_at, one.start_by) == (MIDNIGHT + HOUR, MIDNIGHT + 1.5 * HOUR)
    assert (one.state, one.reason) == (OccurrenceState.DUE, None)


def test_nothing_is_due_after_the_end_of_a_schedule_and_it_is_still_looked_at() -> None:
    schedule = Schedule(entries={"sync": HOURLY}, until=MIDNIGHT + 2 * HOUR)
    assert schedule.next_due("sync", MIDNIGHT + HOUR) == MIDNIGHT + 2 * HOUR
    assert schedule.next_due("sync", MIDNIGHT + 2 * HOUR) is None
    late = look(schedule, "sync", since=MIDNIGHT, now=MIDNIGHT + 9 * HOUR, task_lane=None)
    assert [one.due_at for one in late.occurrences] == [MIDNIGHT + HOUR, MIDNIGHT + 2 * HOUR]
    assert late.watermark == MIDNIGHT + 9 * HOUR


def test_an_end_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ScheduleError, match="give an aware datetime"):
        Schedule(until=MIDNIGHT.replace(tzinfo=None))


def test_an_entry_may_run_a_task_of_another_name() -> None:
    entry = Entry(every(HOUR), expires=HOUR, task="books.sync")

    assert found(since=MIDNIGHT, now=MIDNIGHT + HOUR, entry=entry).occurrences[0].task == "books.sync"


def test_nothing_is_due_at_the_instant_that_was_looked_at_already() -> None:
    assert found(since=MIDNIGHT + HOUR, now=MIDNIGHT + 1.9 * HOUR).occurrences == ()


@pytest.mark.parametrize(
    ("late", "state"),
    [
        (timedelta(0), OccurrenceState.DUE),
        (HOUR / 2, OccurrenceState.DUE),
        (HOUR / 2 + timedelta(microseconds=1), OccurrenceState.MISSED),
    ],
)
def test_an_occurrence_found_after_its_window_is_missed(late: timedelta, state: OccurrenceState) -> None:
    (one,) = found(since=MIDNIGHT, now=MIDNIGHT + HOUR + late).occurrences

    assert one.state is state
    assert (one.reason is not None) == (state is OccurrenceState.MISSED)


def test_a_night_without_a_balancer_is_recorded_as_missed_and_the_last_run_still_due() -> None:
    look_back = found(since=MIDNIGHT, now=MIDNIGHT + 5.25 * HOUR)

    assert [one.state for one in look_back.occurrences] == [OccurrenceState.MISSED] * 4 + [OccurrenceState.DUE]
    assert look_back.watermark == MIDNIGHT + 5.25 * HOUR


def test_of_a_long_absence_the_youngest_are_recorded_and_the_rest_is_counted() -> None:
    look_back = found(since=MIDNIGHT, now=MIDNIGHT + 300.75 * HOUR)

    assert len(look_back.occurrences) == MISSED_KEPT
    assert look_back.occurrences[-1].due_at == MIDNIGHT + 300 * HOUR
    assert look_back.missed_unrecorded == 200


def test_a_clock_that_stepped_back_does_not_take_the_watermark_with_it() -> None:
    assert found(since=MIDNIGHT + HOUR, now=MIDNIGHT) == Due(occurrences=(), watermark=MIDNIGHT + HOUR)


def test_ids_are_the_same_for_whoever_asks_and_differ_by_entry_and_instant() -> None:
    berlin = MIDNIGHT.astimezone(ZoneInfo("Europe/Berlin"))
    ids = {occurrence_id(entry, at) for entry in ("a", "b") for at in (MIDNIGHT, MIDNIGHT + HOUR)}

    assert occurrence_id("a", MIDNIGHT) == occurrence_id("a", berlin)
    assert len(ids) == 4


def test_the_next_due_instant_is_in_the_schedules_zone() -> None:
    schedule = Schedule(zone="Europe/Berlin", entries={"sync": Entry(crontab(hour=3, minute=0), expires=HOUR)})

    assert schedule.next_due("sync", MIDNIGHT) == MIDNIGHT + 2 * HOUR


def test_an_unknown_zone_is_refused_with_an_example() -> None:
    with pytest.raises(ScheduleError, match="'Europe/Bärlin'; give one like"):
        Schedule(zone="Europe/Bärlin")


def test_an_entry_without_a_window_is_refused() -> None:
    with pytest.raises(ScheduleError, match="expires must be at least one second"):
        Entry(every(HOUR), expires=timedelta(0))


def test_what_a_schedule_was_made_of_may_change_afterwards() -> None:
    kwargs, entries = {"full": True}, {"sync": HOURLY}
    entry, schedule = Entry(every(HOUR), expires=HOUR, kwargs=kwargs), Schedule(entries=entries)

    kwargs.clear()
    entries.clear()

    assert dict(entry.kwargs) == {"full": True}
    assert list(schedule.entries) == ["sync"]

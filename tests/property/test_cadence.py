from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise, takewhile
from zoneinfo import ZoneInfo

import pytest
from celery.schedules import crontab_parser
from hypothesis import given
from hypothesis import strategies as st

from slackwater.core.cadence import Cadence, Crontab, Interval, crontab
from slackwater.core.crontab_fields import DAY_OF_MONTH, DAY_OF_WEEK, HOUR, MINUTE, MONTH_OF_YEAR, Field
from slackwater.core.schedule import Entry, Schedule, look

BERLIN = ZoneInfo("Europe/Berlin")
SHORT_DATE = date(2026, 3, 29)  # 02:00 to 03:00 does not exist
LONG_DATE = date(2026, 10, 25)  # 02:00 to 03:00 comes twice
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=BERLIN)


def due_on(cadence: Cadence, day: date) -> list[datetime]:
    start, end = midnight(day), midnight(day + timedelta(days=1)).astimezone(UTC)
    return list(takewhile(lambda at: at < end, cadence.after(start - timedelta(seconds=1), zone=BERLIN)))


EVENINGS_BEFORE = st.sampled_from([datetime(2026, 3, 28, 20, tzinfo=UTC), datetime(2026, 10, 24, 20, tzinfo=UTC)])
LATER = st.timedeltas(timedelta(0), timedelta(hours=20))


def cadences() -> st.SearchStrategy[Cadence]:
    minutes = st.sampled_from(["*", "*/7", "*/15", "0", "30", "0,59", "15-45/10"])
    hours = st.sampled_from(["*", "*/2", "*/3", "1", "2", "3", "1-3", "2,3", "22-4"])
    return st.one_of(
        st.builds(crontab, minutes, hours),
        st.builds(Interval, every=st.timedeltas(timedelta(minutes=1), timedelta(hours=5))),
    )


@given(st.integers(0, 23), st.integers(0, 59), st.sampled_from([SHORT_DATE, LONG_DATE, date(2026, 6, 1)]))
def test_a_daily_entry_is_due_once_on_a_date_of_any_length(hour: int, minute: int, day: date) -> None:
    assert len(due_on(crontab(hour=hour, minute=minute), day)) == 1


@given(st.integers(0, 59))
def test_an_hourly_entry_is_due_23_24_or_25_times(minute: int) -> None:
    counts = [len(due_on(crontab(minute=minute), day)) for day in (SHORT_DATE, date(2026, 6, 1), LONG_DATE)]

    assert counts == [23, 24, 25]


@given(st.integers(0, 59))
def test_a_run_in_the_removed_hour_is_due_at_its_end(minute: int) -> None:
    assert due_on(crontab(hour=2, minute=minute), SHORT_DATE) == [datetime(2026, 3, 29, 1, tzinfo=UTC)]


@given(st.integers(0, 59))
def test_a_run_in_the_repeated_hour_is_due_in_its_first_pass(minute: int) -> None:
    assert due_on(crontab(hour=2, minute=minute), LONG_DATE) == [datetime(2026, 10, 25, 0, minute, tzinfo=UTC)]


@given(cadences(), EVENINGS_BEFORE, LATER)
def test_due_instants_come_later_than_asked_and_in_order(cadence: Cadence, evening: datetime, later: timedelta) -> None:
    instant = evening + later
    due = [at for at, _ in zip(cadence.after(instant, zone=BERLIN), range(30), strict=False)]

    assert due[0] > instant
    assert all(earlier < later for earlier, later in pairwise(due))


@given(cadences(), EVENINGS_BEFORE, st.sets(LATER, min_size=2, max_size=12))
def test_looks_over_any_partition_of_time_find_each_occurrence_once(
    cadence: Cadence, evening: datetime, later: set[timedelta]
) -> None:
    cuts = sorted(evening + one for one in later)
    schedule = Schedule(zone="Europe/Berlin", entries={"sync": Entry(cadence, expires=timedelta(days=9))})

    pieces = [look(schedule, "sync", since=since, now=now, task_lane=None) for since, now in pairwise(cuts)]
    whole = look(schedule, "sync", since=cuts[0], now=cuts[-1], task_lane=None)

    found = [one.due_at for piece in pieces for one in piece.occurrences]
    assert found == [one.due_at for one in whole.occurrences]
    assert len(set(found)) == len(found)
    assert [piece.watermark for piece in pieces] == cuts[1:]


@given(st.sets(st.integers(1, 31), min_size=1, max_size=8), st.sets(st.integers(0, 6), min_size=1, max_size=3))
def test_day_of_month_and_day_of_week_must_both_match(days: set[int], weekdays: set[int]) -> None:
    both = crontab(hour=12, minute=0, day_of_month=",".join(map(str, days)), day_of_week=",".join(map(str, weekdays)))
    dates = [date(2026, 1, 1) + timedelta(days=offset) for offset in range(365)]

    start, end = midnight(dates[0]), midnight(date(2027, 1, 1))
    due = list(takewhile(lambda at: at < end, both.after(start, zone=BERLIN)))

    wanted = [day for day in dates if day.day in days and day.isoweekday() % 7 in weekdays]
    assert [at.astimezone(BERLIN).date() for at in due] == wanted


PARSERS = [
    (MINUTE, crontab_parser(60)),
    (HOUR, crontab_parser(24)),
    (DAY_OF_MONTH, crontab_parser(31, 1)),
    (MONTH_OF_YEAR, crontab_parser(12, 1)),
    (DAY_OF_WEEK, crontab_parser(7)),
]


@st.composite
def field_texts(draw: st.DrawFn, field: Field) -> str:
    number = st.integers(field.low, field.high).map(str)
    name = number if not field.names else st.one_of(number, st.sampled_from(field.names))
    step = st.integers(1, 9).map(lambda count: f"/{count}")
    span = st.builds(lambda first, last: f"{first}-{last}", name, name)
    part = st.one_of(name, span, st.builds(str.__add__, span, step), st.just("*"), step.map(lambda text: "*" + text))
    return ",".join(draw(st.lists(part, min_size=1, max_size=3)))


@pytest.mark.parametrize(("field", "celerys"), PARSERS, ids=lambda one: getattr(one, "name", ""))
@given(data=st.data())
def test_a_field_means_what_it_means_to_celery(field: Field, celerys: crontab_parser, data: st.DataObject) -> None:
    text = data.draw(field_texts(field))

    assert field.numbers(text) == celerys.parse(text)


@given(st.integers(0, 6), st.integers(0, 6))
def test_days_of_the_week_may_be_named(first: int, last: int) -> None:
    assert DAY_OF_WEEK.numbers(f"{DAYS[first]}-{DAYS[last]}") == DAY_OF_WEEK.numbers(f"{first}-{last}")


@given(st.sampled_from([Crontab(day_of_week=text, hour="5", minute="0") for text in ("0", "7", "sun", "Sunday")]))
def test_sunday_is_0_and_7_and_its_name(cadence: Crontab) -> None:
    first = next(cadence.after(datetime(2026, 6, 1, tzinfo=UTC), zone=BERLIN))

    assert first == datetime(2026, 6, 7, 3, tzinfo=UTC)

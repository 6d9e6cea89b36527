from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from slackwater.core.cadence import Crontab, Interval, crontab, every
from slackwater.errors import ScheduleError

BERLIN = ZoneInfo("Europe/Berlin")
SUNDAY = datetime(2026, 11, 29, 12, tzinfo=UTC)


def test_a_crontab_reads_numbers_as_celerys_does() -> None:
    assert crontab(hour=3, minute=30) == Crontab(hour="3", minute="30")
    assert str(crontab(30, 3, day_of_week="mon-fri")) == "crontab 30 3 * * mon-fri"


def test_due_instants_are_in_the_schedules_zone_and_given_in_utc() -> None:
    due = list(islice(crontab(hour=3, minute=30).after(SUNDAY, zone=BERLIN), 2))

    assert due == [datetime(2026, 11, 30, 2, 30, tzinfo=UTC), datetime(2026, 12, 1, 2, 30, tzinfo=UTC)]
    assert {at.tzinfo for at in due} == {UTC}


def test_an_instant_that_is_due_is_not_later_than_itself() -> None:
    at = datetime(2026, 11, 30, 2, 30, tzinfo=UTC)

    assert next(crontab(hour=3, minute=30).after(at, zone=BERLIN)) == at + timedelta(days=1)
    assert next(crontab(hour=3, minute=30).after(at - timedelta(microseconds=1), zone=BERLIN)) == at


def test_nothing_is_due_twice_when_asked_from_within_the_repeated_hour() -> None:
    second_pass = datetime(2026, 10, 25, 1, 15, tzinfo=UTC)  # 02:15 for the second time

    assert next(crontab(hour=2, minute=30).after(second_pass, zone=BERLIN)) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


def test_hours_wrap_around_midnight() -> None:
    nightly = islice(crontab(hour="22-1", minute=0).after(SUNDAY, zone=ZoneInfo("UTC")), 5)

    assert [at.hour for at in nightly] == [22, 23, 0, 1, 22]


def test_weekdays_by_name_leave_out_the_weekend() -> None:
    due = islice(crontab(hour=5, minute=0, day_of_week="mon-fri").after(SUNDAY, zone=BERLIN), 7)

    assert [at.isoweekday() for at in due] == [1, 2, 3, 4, 5, 1, 2]


def test_friday_the_thirteenth_is_both_a_friday_and_a_thirteenth() -> None:
    due = islice(crontab(0, 0, day_of_month=13, day_of_week="fri").after(SUNDAY, zone=ZoneInfo("UTC")), 2)

    assert [at.date().isoformat() for at in due] == ["2027-08-13", "2028-10-13"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"minute": "60"},
        {"minute": ""},
        {"minute": "5/3"},
        {"minute": "*/0"},
        {"hour": "24"},
        {"hour": "1,,2"},
        {"hour": "-1"},
        {"day_of_month": "L"},
        {"day_of_month": "0"},
        {"month_of_year": "13"},
        {"day_of_month": "30", "month_of_year": "2"},
        {"day_of_week": "8"},
        {"day_of_week": "mon#1"},
        {"day_of_week": "5L"},
        {"day_of_week": "someday"},
        {"hour": "mon"},
        {"minute": "1 2"},
    ],
)
def test_a_field_that_cannot_be_is_refused_with_the_crontab_and_its_fields(wrong: dict[str, str]) -> None:
    with pytest.raises(ScheduleError, match=r"^crontab .*fields are minute hour day_of_month"):
        Crontab(**wrong)


def test_an_interval_is_due_at_whole_multiples_since_1970() -> None:
    due = islice(every(timedelta(minutes=7)).after(SUNDAY, zone=BERLIN), 3)

    assert [(at - datetime(1970, 1, 1, tzinfo=UTC)) % timedelta(minutes=7) for at in due] == [timedelta(0)] * 3
    assert next(every(timedelta(hours=1)).after(SUNDAY, zone=BERLIN)) == SUNDAY + timedelta(hours=1)


def test_an_interval_below_a_second_is_refused() -> None:
    with pytest.raises(ScheduleError, match="at least one second"):
        every(timedelta(milliseconds=999))
    assert str(Interval(every=timedelta(seconds=1))) == "every 0:00:01"

"""A night's length, clock and volumes."""

from datetime import UTC, date, datetime, timedelta

import pytest

from nightshift.course import TENANTS, scale_of, span_of, tempo_of
from nightshift.schedule import schedule
from nightshift.settings import Plan
from nightshift.world_process import RATE_LIMIT

RUN_START = datetime(2026, 11, 29, 20, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("day", "starts_at", "ends_at"),
    [
        (date(2026, 7, 1), datetime(2026, 6, 30, 23, 30, tzinfo=UTC), datetime(2026, 7, 1, 6, 0, tzinfo=UTC)),
        (date(2026, 3, 29), datetime(2026, 3, 29, 0, 30, tzinfo=UTC), datetime(2026, 3, 29, 6, 0, tzinfo=UTC)),
        (date(2026, 10, 25), datetime(2026, 10, 24, 23, 30, tzinfo=UTC), datetime(2026, 10, 25, 7, 0, tzinfo=UTC)),
    ],
    ids=["an ordinary night", "the hour that is left out", "the hour that comes twice"],
)
def test_a_night_runs_from_half_past_one_to_eight_in_berlin(day: date, starts_at: datetime, ends_at: datetime) -> None:
    span = span_of(day)
    assert (span.starts_at, span.ends_at) == (starts_at, ends_at)
    assert span.starts_at.utcoffset() == timedelta(0)


def test_people_click_until_a_quarter_of_an_hour_before_the_end() -> None:
    span = span_of(date(2026, 10, 25))
    assert span.last_click_at == datetime(2026, 10, 25, 6, 45, tzinfo=UTC)


@pytest.mark.parametrize("day", [date(2026, 11, 29), date(2026, 3, 29), date(2026, 10, 25)])
@pytest.mark.parametrize("minutes", [0.5, 4.0, 600.0])
def test_a_night_takes_the_asked_minutes_however_many_hours_it_has(day: date, minutes: float) -> None:
    span = span_of(day)
    tempo = tempo_of(span, minutes=minutes, run_start=RUN_START)
    assert tempo.calendar_at(RUN_START) == span.starts_at
    ends = tempo.run_at(span.ends_at)
    assert abs(ends - RUN_START - timedelta(minutes=minutes)) < timedelta(milliseconds=1)


def test_volumes_grow_with_the_nights_length_and_each_tenant_keeps_an_account() -> None:
    default = scale_of(4)
    assert (default.tenants, default.accounts, default.receipts, default.runs) == (40, 200, 60, 240)
    shortest = scale_of(0.5)
    assert shortest.accounts >= shortest.tenants == TENANTS
    assert shortest.receipts > 0
    assert scale_of(0.01).runs == 1


def test_the_banks_fan_outs_fit_before_the_sweep_at_the_aggregators_limit() -> None:
    """Two calls an account in each fan-out, at the pace of the limit; what is left is for answers on their way."""
    span = span_of(date(2026, 11, 30))
    due = {name: schedule(Plan.SHIFTED).next_due(name, span.starts_at) for name in schedule(Plan.SHIFTED).entries}
    sync, refresh, sweep = (
        due[name] for name in ("update_all_transactions", "update_accounts", "categorize_uncategorized_transactions")
    )
    assert sync is not None
    assert refresh is not None
    assert sweep is not None
    for minutes in (4.0, 10.0, 60.0):
        rate = tempo_of(span, minutes=minutes, run_start=span.starts_at).rate
        calling_s = 2 * scale_of(minutes).accounts / (0.97 * RATE_LIMIT.calls_per_second)
        assert calling_s < (refresh - sync).total_seconds() / rate
        assert calling_s < (sweep - refresh).total_seconds() / rate

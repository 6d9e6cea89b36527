"""A night's course: its length, its clock, and how much happens in it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from nightshift.books.generator import Scale
from nightshift.schedule import ZONE
from slackwater import Tempo

STARTS, ENDS = time(1, 30), time(8, 0)
LAST_CLICK_BEFORE_END = timedelta(minutes=15)
TENANTS = 40
ACCOUNTS_A_MINUTE, RECEIPTS_A_MINUTE, RUNS_A_MINUTE = 50, 15, 60
"""Volumes are sized to the night's length, so that at any speed the bank's fan-outs fill the time until the sweep:
at 11.6 calls a second the sync takes an hour and a quarter of the calendar, and so does the refresh after it."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """The night on its calendar clock (UTC)."""

    starts_at: datetime
    ends_at: datetime

    @property
    def last_click_at(self) -> datetime:
        """Return until when people click: whoever clicks last shall still see the answer."""
        return self.ends_at - LAST_CLICK_BEFORE_END


def span_of(day: date) -> Span:
    """Return the night that ends on a day."""
    zone = ZoneInfo(ZONE)
    utc = ZoneInfo("UTC")
    return Span(
        starts_at=datetime.combine(day, STARTS, zone).astimezone(utc),
        ends_at=datetime.combine(day, ENDS, zone).astimezone(utc),
    )


def tempo_of(span: Span, *, minutes: float, run_start: datetime) -> Tempo:
    """Return the tempo at which the night takes so many minutes of real time from `run_start` on."""
    rate = (span.ends_at - span.starts_at).total_seconds() / (minutes * 60)
    return Tempo(run_origin=run_start, calendar_origin=span.starts_at, rate=rate)


def scale_of(minutes: float) -> Scale:
    """Return how much happens in a night of so many minutes."""
    return Scale(
        tenants=TENANTS,
        accounts=max(TENANTS, round(ACCOUNTS_A_MINUTE * minutes)),
        receipts=max(1, round(RECEIPTS_A_MINUTE * minutes)),
        runs=max(1, round(RUNS_A_MINUTE * minutes)),
    )

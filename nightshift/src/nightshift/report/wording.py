"""How the report writes times, counts and amounts: one way for the terminal, the page and the evidence."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from slackwater import Tempo


def clock(calendar: datetime, zone: ZoneInfo) -> str:
    """Write an instant of the calendar as people read it: hours and minutes in their zone."""
    return f"{calendar.astimezone(zone):%H:%M}"


def night_clock(run: datetime, *, tempo: Tempo, zone: ZoneInfo) -> str:
    """Write an instant of the run clock as the calendar's time of night, to the second."""
    return f"{tempo.calendar_at(run).astimezone(zone):%H:%M:%S}"


def count(number: int, one: str, many: str | None = None) -> str:
    """Write a number with its noun: `1 job`, `1,912 jobs`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def seconds(span_s: float | None) -> str:
    """Write a span: `0.03 s`, `2.5 s`, `41 s`, and `unknown` where there is none."""
    if span_s is None:
        return "unknown"
    if span_s < 1:
        return f"{span_s:.2f} s"
    return f"{span_s:.1f} s" if span_s < 10 else f"{span_s:,.0f} s"


def megabytes(size_bytes: int) -> str:
    """Write a size in MB (10^6 bytes)."""
    return f"{size_bytes / 1e6:,.0f} MB"


def some_of(lines: tuple[str, ...], most: int) -> tuple[str, ...]:
    """Shorten evidence to the first `most` lines, and say how many more there are."""
    if len(lines) <= most:
        return lines
    return (*lines[:most], f"and {len(lines) - most:,} more (all are in the JSON report)")

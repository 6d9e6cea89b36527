"""Spans of time, as a schedule reads them."""

from __future__ import annotations

from datetime import timedelta


def seconds(count: float) -> timedelta:
    """Return that many seconds."""
    return timedelta(seconds=count)


def minutes(count: float) -> timedelta:
    """Return that many minutes."""
    return timedelta(minutes=count)


def hours(count: float) -> timedelta:
    """Return that many hours."""
    return timedelta(hours=count)

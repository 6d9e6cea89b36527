"""Instants as a store keeps them."""

from __future__ import annotations

from datetime import UTC, datetime


def in_utc(instant: datetime) -> datetime:
    """Return an aware instant in UTC.

    Raises:
        ValueError: It has no zone.
    """
    if instant.tzinfo is None:
        raise ValueError(f"an instant without a zone: {instant.isoformat()}")
    return instant.astimezone(UTC)

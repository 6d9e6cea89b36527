"""What is sensed: presence and readings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from slackwater.core.reading import LaneReading, Presence


class PresenceStore(Protocol):
    """Workers' signs of life."""

    def refresh(self, presence: Presence) -> None:
        """Write one worker's row, in one statement."""
        ...

    def all(self) -> Sequence[Presence]:
        """Return every row, also of workers that are gone, by worker."""
        ...

    def forget(self, worker: str, *, boot: UUID) -> None:
        """Remove a worker's row at its orderly end, unless it has been started anew since."""
        ...


class ReadingStore(Protocol):
    """Readings over time."""

    def append(self, readings: Sequence[LaneReading]) -> None:
        """Record; the same lane and instant twice is one."""
        ...

    def between(self, since: datetime, until: datetime) -> Sequence[LaneReading]:
        """Return those of [since, until), by instant then lane."""
        ...

    def prune(self, before: datetime) -> int:
        """Delete those before an instant; return how many."""
        ...

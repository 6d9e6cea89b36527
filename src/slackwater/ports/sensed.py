"""What is sensed: presence and readings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from slackwater.core.canary import Canary
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


class CanaryStore(Protocol):
    """Canaries of the lanes, a row a lane."""

    def send(self, lane: str, *, at: datetime) -> None:
        """Record that one is sent; while an older one is not answered its instant stays."""
        ...

    def answer(self, lane: str, *, at: datetime, worker: str) -> None:
        """Record that a worker of the lane has run one; an older answer changes nothing."""
        ...

    def all(self) -> Sequence[Canary]:
        """Return each lane's, by lane."""
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

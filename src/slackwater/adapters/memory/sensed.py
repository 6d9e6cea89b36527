"""What was sensed: workers' signs of life and lanes' readings, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from threading import Lock
from uuid import UUID

from slackwater.adapters.memory.instants import in_utc
from slackwater.adapters.memory.pulse import Pulse
from slackwater.core.reading import LaneCounts, LaneReading, Presence


class MemoryPresence:
    """The presence store."""

    def __init__(self, pulse: Pulse) -> None:
        self._lock = Lock()
        self._pulse = pulse
        self._by_worker: dict[str, Presence] = {}

    def refresh(self, presence: Presence) -> None:
        """Write one worker's row, and move the pulse; what an earlier start of the worker says late is dropped."""
        kept = replace(
            presence,
            started_at=in_utc(presence.started_at),
            refreshed_at=in_utc(presence.refreshed_at),
            lanes=_copied(presence),
        )
        with self._lock:
            self._pulse.beat(presence.lives_for)
            known = self._by_worker.get(presence.worker)
            if known is None or known.started_at <= kept.started_at:
                self._by_worker[presence.worker] = kept

    def all(self) -> Sequence[Presence]:
        """Return every row, also of workers that are gone, by worker."""
        with self._lock:
            return [replace(one, lanes=_copied(one)) for _, one in sorted(self._by_worker.items())]

    def forget(self, worker: str, *, boot: UUID) -> None:
        """Remove a worker's row at its orderly end, unless it has been started anew since."""
        with self._lock:
            known = self._by_worker.get(worker)
            if known is not None and known.boot == boot:
                del self._by_worker[worker]


class MemoryReadings:
    """The reading store."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_instant: dict[tuple[datetime, str], LaneReading] = {}

    def append(self, readings: Sequence[LaneReading]) -> None:
        """Record; the same lane and instant twice is one."""
        with self._lock:
            for one in readings:
                at = in_utc(one.at)
                self._by_instant.setdefault((at, one.lane), replace(one, at=at))

    def between(self, since: datetime, until: datetime) -> Sequence[LaneReading]:
        """Return those of [since, until), by instant then lane."""
        with self._lock:
            return [one for (at, _), one in sorted(self._by_instant.items()) if since <= at < until]

    def prune(self, before: datetime) -> int:
        """Delete those before an instant; return how many."""
        with self._lock:
            gone = [key for key in self._by_instant if key[0] < before]
            for key in gone:
                del self._by_instant[key]
        return len(gone)


def _copied(said: Presence) -> Mapping[str, LaneCounts]:
    return {lane: replace(counts, expired=dict(counts.expired)) for lane, counts in said.lanes.items()}

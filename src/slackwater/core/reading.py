"""Readings: what was sensed, lane by lane. Unknown is None, never zero."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID


@dataclass(frozen=True, kw_only=True)
class LaneCounts:
    """What one worker process has done for one lane since it started.

    Attributes:
        slots: Places in its pool.
        busy: Bodies running now.
        started: Bodies started.
        finished: Bodies ended, however they ended.
        failed: Bodies ended by an error.
        expired: Jobs dropped before their body, by reason.
    """

    slots: int
    busy: int = 0
    started: int = 0
    finished: int = 0
    failed: int = 0
    expired: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Presence:
    """A worker process's sign of life (heartbeat); instants of the run clock.

    Attributes:
        worker: Node name, unique among living workers.
        boot: Drawn anew at each start, so that a restarted worker is not its predecessor.
        host: Machine.
        pid: Process on that machine.
        started_at: When the process became ready.
        refreshed_at: When this was said.
        lives_for: How long it counts.
        lanes: By lane.
    """

    worker: str
    boot: UUID
    host: str
    pid: int
    started_at: datetime
    refreshed_at: datetime
    lives_for: timedelta
    lanes: Mapping[str, LaneCounts]

    def alive(self, now: datetime) -> bool:
        """Tell whether it still counts at an instant of the run clock."""
        return now <= self.refreshed_at + self.lives_for


@dataclass(frozen=True, kw_only=True)
class QueueReading:
    """What a broker said of one queue.

    Attributes:
        ready: Messages waiting; None where the broker could not be asked.
        oldest_published_at: When the oldest of them was published (run clock); None where nothing waits, or the
            broker cannot tell.
        unacked: Messages delivered and not acknowledged: running, or fetched in advance; None where the broker cannot
            tell.
    """

    ready: int | None = None
    oldest_published_at: datetime | None = None
    unacked: int | None = None


@dataclass(frozen=True, kw_only=True)
class LaneReading:
    """One sample of one lane.

    Attributes:
        at: Run clock.
        lane: Its name.
        ready: Messages waiting.
        running: Bodies running, by presence.
        slots: Places in the pools of all living workers.
        workers: Living worker processes that consume it.
        oldest_age: How long the oldest message has waited (run clock).
        unacked: Messages delivered and not acknowledged.
    """

    at: datetime
    lane: str
    ready: int | None = None
    running: int | None = None
    slots: int | None = None
    workers: int | None = None
    oldest_age: timedelta | None = None
    unacked: int | None = None


def compose(
    lanes: Iterable[str],
    queues: Mapping[str, QueueReading],
    presences: Sequence[Presence] | None,
    *,
    now: datetime,
) -> tuple[LaneReading, ...]:
    """Put together what the broker and the workers said into one reading a lane.

    Args:
        lanes: Their names.
        queues: By lane; a lane that is absent could not be read.
        presences: All workers' signs of life; None where they could not be read.
        now: Run clock.
    """
    living = None if presences is None else [presence for presence in presences if presence.alive(now)]
    return tuple(_lane_reading(lane, queues.get(lane, QueueReading()), living, now=now) for lane in lanes)


def _lane_reading(lane: str, queue: QueueReading, living: list[Presence] | None, *, now: datetime) -> LaneReading:
    counts = None if living is None else [one.lanes[lane] for one in living if lane in one.lanes]
    oldest = queue.oldest_published_at
    return LaneReading(
        at=now,
        lane=lane,
        ready=queue.ready,
        running=None if counts is None else sum(count.busy for count in counts),
        slots=None if counts is None else sum(count.slots for count in counts),
        workers=None if counts is None else len(counts),
        oldest_age=None if oldest is None else max(now - oldest, timedelta(0)),
        unacked=queue.unacked,
    )

"""Presence: what a worker process says of itself every few seconds, and the leases of its bodies that it renews."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog

from slackwater.adapters.celery.counting import busy_by_task, running_jobs, tally_of
from slackwater.core.reading import LaneCounts, Presence
from slackwater.errors import SlackwaterError
from slackwater.ports import Clock, Store
from slackwater.settings import Settings

log = structlog.get_logger("slackwater.presence")


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """Refreshes one worker's presence, and renews its bodies' leases: one statement each, however many bodies run.

    Attributes:
        worker: Node name.
        boot: Id of the process.
        app: Its application.
        store: Gives the store.
        counts: Returns what it does, by lane.
        clock: The two clocks.
        settings: How long signs of life and leases count.
        started_at: When it became ready (run clock).
    """

    worker: str
    boot: UUID
    app: Any
    store: Callable[[], Store]
    counts: Callable[[], Mapping[str, LaneCounts]]
    clock: Clock
    settings: Settings
    started_at: datetime

    def beat(self) -> None:
        """Say that the worker lives; let go of what its dead children held.

        Raises:
            StoreUnavailable: Nobody was told.
        """
        store, tally = self.store(), tally_of(self.app)
        tally.news.clear()
        lost = tally.take_lost()
        try:
            # One by one, each with its own age: the job may run again by now, under the same lease and in this worker.
            for job, at in lost.items():
                store.runs.lapse(self.boot, [job], lost_for=timedelta(seconds=time.monotonic() - at))
        except SlackwaterError:
            tally.give_back(lost)
            raise
        store.presence.refresh(self._presence())
        store.runs.renew(self.boot, running_jobs(), lives_for=self.settings.lease_lives_for)

    def say_goodbye(self) -> None:
        """Take the row away."""
        try:
            self.store().presence.forget(self.worker, boot=self.boot)
        except SlackwaterError as error:
            log.warning("presence not taken away, it will lapse", worker=self.worker, error=str(error))

    def _presence(self) -> Presence:
        return Presence(
            worker=self.worker,
            boot=self.boot,
            host=socket.gethostname(),
            pid=os.getpid(),
            started_at=self.started_at,
            refreshed_at=self.clock.run(),
            lives_for=self.settings.presence_lives_for,
            lanes=self.counts(),
        )


def counts_of(
    app: Any,
    *,
    lanes: Mapping[str, str],
    paused: frozenset[str] = frozenset(),
    lane_of: Callable[[str], str | None],
    slots: int,
) -> Mapping[str, LaneCounts]:
    """Count what a worker does, for each lane whose queue it consumes.

    Args:
        app: The worker's application.
        lanes: Queue by lane.
        paused: Lanes of the worker whose queues it does not consume just now.
        lane_of: Lane of a task, by its name.
        slots: Places in its pool; told, since the pool itself is gone before the last bodies are counted.
    """
    consumed = set(app.amqp.queues.consume_from)
    tasks: dict[str, list[str]] = {lane: [] for lane, queue in lanes.items() if queue in consumed or lane in paused}
    for name in list(app.tasks):
        if (lane := lane_of(name)) in tasks:
            tasks[lane].append(name)
    busy, tally = busy_by_task(), tally_of(app)
    return {
        lane: tally.of(names, slots=slots, busy=sum(busy.get(name, 0) for name in names))
        for lane, names in tasks.items()
    }

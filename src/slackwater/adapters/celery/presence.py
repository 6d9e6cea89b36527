"""The worker's one thread of ours: it says, every few seconds and in one statement, that the worker lives."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog

from slackwater.adapters.celery.counting import busy_by_task, tally_of
from slackwater.core.reading import LaneCounts, Presence
from slackwater.errors import SlackwaterError
from slackwater.ports import Clock, Store
from slackwater.settings import Settings

log = structlog.get_logger("slackwater.presence")
FAREWELL_S = 5.0


@dataclass(kw_only=True)
class Heartbeat:
    """Refreshes one worker's presence until it is stopped."""

    worker: str
    store: Callable[[], Store]
    counts: Callable[[], Mapping[str, LaneCounts]]
    clock: Clock
    settings: Settings
    boot: UUID
    _stop: threading.Event = field(default_factory=threading.Event, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _started_at: datetime | None = field(default=None, init=False)

    def start(self) -> None:
        """Start the thread; says once, at once, that the worker is there."""
        self._started_at = self.clock.run()
        self._thread = threading.Thread(target=self._run, name="slackwater-presence", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and take the row away."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(FAREWELL_S)
        try:
            self.store().presence.forget(self.worker, boot=self.boot)
        except SlackwaterError as error:
            log.warning("presence not taken away, it will lapse", worker=self.worker, error=str(error))

    def _run(self) -> None:
        silent = False
        while True:
            try:
                self.store().presence.refresh(self._presence())
            except SlackwaterError as error:
                if not silent:
                    log.warning("presence not refreshed, keeps trying", worker=self.worker, error=str(error))
                silent = True
            else:
                silent = False
            if self._stop.wait(self.settings.presence_every.total_seconds()):
                return

    def _presence(self) -> Presence:
        now = self.clock.run()
        return Presence(
            worker=self.worker,
            boot=self.boot,
            host=socket.gethostname(),
            pid=os.getpid(),
            started_at=self._started_at or now,
            refreshed_at=now,
            lives_for=self.settings.presence_lives_for,
            lanes=self.counts(),
        )


def counts_of(
    app: Any, *, lanes: Mapping[str, str], lane_of: Callable[[str], str | None], slots: int
) -> Mapping[str, LaneCounts]:
    """Count what a worker does, for each lane whose queue it consumes.

    Args:
        app: The worker's application.
        lanes: Queue by lane.
        lane_of: Lane of a task, by its name.
        slots: Places in its pool; told, since the pool itself is gone before the last bodies are counted.
    """
    consumed = set(app.amqp.queues.consume_from)
    tasks: dict[str, list[str]] = {lane: [] for lane, queue in lanes.items() if queue in consumed}
    for name in list(app.tasks):
        if (lane := lane_of(name)) in tasks:
            tasks[lane].append(name)
    busy, tally = busy_by_task(), tally_of(app)
    return {
        lane: tally.of(names, slots=slots, busy=sum(busy.get(name, 0) for name in names))
        for lane, names in tasks.items()
    }

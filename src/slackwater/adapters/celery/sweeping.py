"""A worker's look after the others: where no balancer runs, the workers sweep for each other."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from datetime import timedelta

from slackwater.core.liveness import Owner
from slackwater.engine.balancer import Duty
from slackwater.engine.dead_workers import DeadWorkers
from slackwater.ports import Recovery

FAREWELL_S = 5.0


@dataclass(kw_only=True)
class Sweeping:
    """Looks for dead workers every few seconds, until it is stopped.

    In a thread of its own: what the broker takes to answer must not delay this worker's presence.
    """

    owner: Owner
    sweeper: DeadWorkers
    recovery: Recovery
    every: timedelta
    _stop: threading.Event = field(default_factory=threading.Event, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="slackwater-sweeping", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(FAREWELL_S)

    def _run(self) -> None:
        duty = Duty("dead workers", self._look, self.every)
        while not self._stop.is_set():
            duty.run(now=time.monotonic())
            self._stop.wait(max(0.0, duty.due - time.monotonic()))

    def _look(self) -> None:
        # Again and again: one that was taken for dead, struck off, and lives must be found when it dies.
        self.recovery.enter(self.owner)
        self.sweeper.sweep()

"""What happens beside the bodies while a worker process of the application lives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from celery import Celery, signals

from slackwater.adapters.celery.boot import boot_of
from slackwater.adapters.celery.counting import tally_of
from slackwater.adapters.celery.outlet import Outlet
from slackwater.adapters.celery.presence import Heartbeat, counts_of
from slackwater.adapters.celery.worker_thread import WorkerThread
from slackwater.adapters.embedded import follow_parent
from slackwater.core.reading import LaneCounts
from slackwater.engine.feeder import Feeder
from slackwater.ports import Clock, Store
from slackwater.settings import Settings


@dataclass(kw_only=True)
class WorkerLife:
    """Follows the signals of this application's workers: presence, leases and the feeder of each.

    Attributes:
        app: The application.
        queues: Queue by lane.
        lane_of: Lane of a task, by its name.
        store: Gives the store, opened in the process that asks.
        opened: Returns the store if this process has opened it.
        clock: The two clocks.
        settings: How the processes behave.
    """

    app: Celery
    queues: Mapping[str, str]
    lane_of: Callable[[str], str | None]
    store: Callable[[], Store]
    opened: Callable[[], Store | None]
    clock: Clock
    settings: Settings
    _threads: list[WorkerThread] = field(default_factory=list, init=False)
    _heartbeat: Heartbeat | None = field(default=None, init=False)

    def follow_signals(self) -> None:
        """Connect; Celery keeps weak references, and this object is kept by the application."""
        signals.worker_ready.connect(self._ready)
        signals.worker_shutdown.connect(self._shut_down)
        signals.worker_process_init.connect(self._forked)

    def _ready(self, sender: Any = None, **_: Any) -> None:
        if sender.app is not self.app:
            return
        slots = int(sender.pool.num_processes)

        def counts() -> Mapping[str, LaneCounts]:
            return counts_of(self.app, lanes=self.queues, lane_of=self.lane_of, slots=slots)

        self._heartbeat = Heartbeat(
            worker=str(sender.hostname),
            boot=boot_of(self.app),
            app=self.app,
            store=self.store,
            counts=counts,
            clock=self.clock,
            settings=self.settings,
            started_at=self.clock.run(),
        )
        feeder = Feeder(
            holds=lambda: self.store().holds,
            publish=Outlet(self.app).publish,
            free=lambda: {lane: count.slots - count.busy for lane, count in counts().items()},
            clock=self.clock,
            boot=boot_of(self.app),
        )
        self._threads = [
            WorkerThread(
                name="presence",
                every=self.settings.presence_every,
                act=self._heartbeat.beat,
                news=tally_of(self.app).news,
            ),
            WorkerThread(name="feeder", every=self.settings.feed_every, act=feeder.feed),
        ]
        for thread in self._threads:
            thread.start()

    def _shut_down(self, **_: Any) -> None:
        while self._threads:
            self._threads.pop().stop()
        if self._heartbeat is not None:
            self._heartbeat.say_goodbye()
            self._heartbeat = None

    def _forked(self, **_: Any) -> None:
        follow_parent()
        if (store := self.opened()) is not None:
            store.release_connections()

"""What happens beside the bodies while a worker process of the application lives."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import structlog
from celery import Celery, signals

from slackwater.adapters.brokers.outlet import Outlet
from slackwater.adapters.brokers.recovery import open_recovery
from slackwater.adapters.celery.boot import boot_of, new_boot
from slackwater.adapters.celery.counting import tally_of
from slackwater.adapters.celery.hands import OwnHands
from slackwater.adapters.celery.heartbeating import beat_often
from slackwater.adapters.celery.keeping import Keeper
from slackwater.adapters.celery.leaving import Leaving
from slackwater.adapters.celery.owning import enter_at_each_connection, own, wait_for_results
from slackwater.adapters.celery.pausing import Pausing
from slackwater.adapters.celery.presence import Heartbeat, counts_of
from slackwater.adapters.celery.worker_thread import WorkerThread
from slackwater.adapters.embedded import follow_parent
from slackwater.core.lane import Lane
from slackwater.core.liveness import Owner
from slackwater.core.reading import LaneCounts
from slackwater.engine.dead_workers import DeadWorkers
from slackwater.engine.feeder import Feeder
from slackwater.errors import BrokerUnavailable, ConfigurationError, StoreUnavailable
from slackwater.ports import Clock, Recovery, Store
from slackwater.settings import Settings

log = structlog.get_logger("slackwater.worker")
EXIT_BAD_INPUT = 2


class MakeDeadWorkers(Protocol):
    """Puts the sweeper of dead workers together."""

    def __call__(self, recovery: Recovery, *, itself: Owner | None = None) -> DeadWorkers: ...  # noqa: D102


@dataclass(kw_only=True)
class WorkerLife:
    """Follows the signals of this application's workers: ownership, presence, leases, feeder and sweeping of each.

    Attributes:
        app: The application.
        lanes: By name.
        queues: Queue by lane.
        lane_of: Lane of a task, by its name.
        store: Gives the store, opened in the process that asks.
        opened: Returns the store if this process has opened it.
        clock: The two clocks.
        settings: How the processes behave.
        realm: Whose workers sweep for each other.
        dead_workers: Puts the sweeper together.
        check: Raises `ConfigurationError` where a worker of these lanes cannot run: the application or its broker.
    """

    app: Celery
    lanes: Mapping[str, Lane]
    queues: Mapping[str, str]
    lane_of: Callable[[str], str | None]
    store: Callable[[], Store]
    opened: Callable[[], Store | None]
    clock: Clock
    settings: Settings
    realm: str
    dead_workers: MakeDeadWorkers
    check: Callable[[Iterable[str]], None]
    _owner: Owner | None = field(default=None, init=False)
    _leaving: Leaving = field(init=False)
    _threads: list[WorkerThread] = field(default_factory=list, init=False)
    _heartbeat: Heartbeat | None = field(default=None, init=False)
    _recovery: Recovery | None = field(default=None, init=False)
    _outlet: Outlet | None = field(default=None, init=False)

    def follow_signals(self) -> None:
        """Connect; Celery keeps weak references, and this object is kept by the application."""
        self._leaving = Leaving(hand_back=self._note_handed_back, farewell=self._shut_down)
        signals.celeryd_init.connect(self._initialised)
        signals.worker_ready.connect(self._ready)
        signals.worker_shutting_down.connect(self._shutting_down)
        signals.worker_shutdown.connect(self._shut_down)
        signals.worker_process_init.connect(self._forked)
        enter_at_each_connection(self.app, owner_of=lambda: self._owner, realm=self.realm)
        beat_often(self.app, within=self.settings.found_within)

    def _initialised(self, sender: Any = None, instance: Any = None, options: Any = None, **_: Any) -> None:
        if instance.app is not self.app:
            return
        self._owner = Owner(worker=str(sender), boot=new_boot(self.app))
        own(self.app, self._owner)
        wait_for_results(self.app)
        self._leaving.follow(instance)
        self._refuse(self._consumed((options or {}).get("queues")))

    def _consumed(self, queues: str | Iterable[str] | None) -> list[str]:
        """Return the lanes that a worker consumes, by its `-Q`; all where it has none."""
        named = set(queues.split(",") if isinstance(queues, str) else queues or ())
        return [lane for lane, queue in self.queues.items() if not named or queue in named]

    def _refuse(self, lanes: Sequence[str]) -> None:
        """End this process, one line a finding, where it cannot run; a signal's receiver may not raise."""
        try:
            self.check(lanes)
        except ConfigurationError as error:
            for line in error.findings:
                sys.stderr.write(f"slackwater: {line}\n")
            raise SystemExit(EXIT_BAD_INPUT) from error

    def _ready(self, sender: Any = None, **_: Any) -> None:
        if sender.app is not self.app:
            return
        # A worker that a test starts inside of its own process sends no celeryd_init.
        self._owner = self._owner or Owner(worker=str(sender.hostname), boot=boot_of(self.app))
        self._leaving.follow_pool(sender.pool, consumer=sender)
        slots, pausing = int(sender.pool.num_processes), self._pausing_of(sender)

        def counts() -> Mapping[str, LaneCounts]:
            return counts_of(self.app, lanes=self.queues, paused=pausing.paused, lane_of=self.lane_of, slots=slots)

        self._heartbeat = self._heartbeat_of(self._owner, counts)
        self._recovery = recovery = open_recovery(self.app, realm=self.realm)
        own_hands = OwnHands(owner=self._owner, hands=recovery, consumer=sender, store=self.store)
        self._outlet = outlet = Outlet(self.app)

        def free() -> Mapping[str, int]:
            return {lane: one.slots - one.busy for lane, one in counts().items() if lane not in pausing.paused}

        feeder = self._feeder_of(self._owner, outlet, free)
        settings = self.settings
        self._threads = [
            WorkerThread(
                name="presence", every=settings.presence_every, act=self._heartbeat.beat, news=tally_of(self.app).news
            ),
            # Twice as often, as a job is kept at the second look that finds it.
            WorkerThread(name="keeping", every=settings.presence_every / 2, act=self._keeper_of(self._owner).look),
            WorkerThread(name="pauses", every=settings.presence_every, act=pausing.obey),
            WorkerThread(name="feeder", every=settings.feed_every, act=feeder.feed),
            # In a thread of its own: what the broker takes to answer must not delay this worker's presence.
            WorkerThread(
                name="sweeping", every=settings.sweep_every, act=self._look_after(self._owner, recovery, own_hands)
            ),
        ]
        for thread in self._threads:
            thread.start()

    def _pausing_of(self, consumer: Any) -> Pausing:
        consumed = self.app.amqp.queues.consume_from
        queues = {lane: queue for lane, queue in self.queues.items() if queue in consumed}
        return Pausing(consumer=consumer, queues=queues, store=self.store, clock=self.clock)

    def _feeder_of(self, owner: Owner, outlet: Outlet, free: Callable[[], Mapping[str, int]]) -> Feeder:
        return Feeder(
            holds=lambda: self.store().holds, publish=outlet.publish, free=free, clock=self.clock, boot=owner.boot
        )

    def _heartbeat_of(self, owner: Owner, counts: Callable[[], Mapping[str, LaneCounts]]) -> Heartbeat:
        return Heartbeat(
            worker=owner.worker,
            boot=owner.boot,
            app=self.app,
            store=self.store,
            counts=counts,
            clock=self.clock,
            settings=self.settings,
            started_at=self.clock.run(),
        )

    def _keeper_of(self, owner: Owner) -> Keeper:
        return Keeper(
            boot=owner.boot,
            lanes=self.lanes,
            lane_of=self.lane_of,
            store=self.store,
            clock=self.clock,
            lease_lives_for=self.settings.lease_lives_for,
        )

    def _look_after(self, owner: Owner, recovery: Recovery, own_hands: OwnHands) -> Callable[[], None]:
        sweepers: list[DeadWorkers] = []

        def look() -> None:
            if not sweepers:
                sweepers.append(self.dead_workers(recovery, itself=owner))
            # Again and again: one that was taken for dead, struck off, and lives must be found when it dies.
            recovery.enter(owner)
            own_hands.look()
            sweepers[0].sweep()

        return look

    def _shutting_down(self, how: str = "", **_: Any) -> None:
        """Have nothing more published by this worker that it would hand back at once."""
        for thread in self._threads:
            if thread.name == "feeder":
                thread.ask_to_stop()
        self._leaving.begins(how)

    def _shut_down(self, **_: Any) -> None:
        while self._threads:
            self._threads.pop().stop()
        self._hand_back()
        if self._heartbeat is not None:
            self._heartbeat.say_goodbye()
            self._heartbeat = None
        if self._outlet is not None:
            self._outlet.close()
            self._outlet = None

    def _hand_back(self) -> None:
        """Hand back what the worker's own farewell left in its hands: not an attempt of the jobs'."""
        if self._owner is None:
            return
        self._note_handed_back(self._leaving.left())
        if self._recovery is None:
            return
        try:
            self._recovery.restore(self._owner)
            self._recovery.forget(self._owner)
        except BrokerUnavailable as error:
            log.warning("not handed back, others will find it", worker=self._owner.worker, error=str(error))
        self._recovery.close()
        self._recovery = None

    def _note_handed_back(self, left: Iterable[tuple[str, int]]) -> None:
        jobs = list(left)
        try:
            if jobs and self._owner is not None:
                self.store().runs.hand_back(jobs, boot=self._owner.boot)
        except StoreUnavailable as error:
            log.warning("handed back, counted as attempts", jobs=len(jobs), error=str(error))

    def _forked(self, **_: Any) -> None:
        follow_parent()
        if (store := self.opened()) is not None:
            store.release_connections()

"""Slackwater around a Celery application: what a user's code touches."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import Any
from uuid import UUID, uuid4

import structlog
from celery import Celery, signals

from slackwater.adapters.brokers.dead_letters import Drain
from slackwater.adapters.brokers.queues import refused_queues
from slackwater.adapters.brokers.recovery import open_recovery
from slackwater.adapters.celery.broker_letters import BrokerLetters
from slackwater.adapters.celery.configuration import configure, conflicts, is_redis, queues_of
from slackwater.adapters.celery.fan_out import AnyTask, FanOut, FanOuts
from slackwater.adapters.celery.guarding import Guard, GuardedRegistry
from slackwater.adapters.celery.owning import enter_at_each_connection, own
from slackwater.adapters.celery.presence import Heartbeat, counts_of
from slackwater.adapters.celery.publishing import Listener, Seam, install
from slackwater.adapters.celery.run_times import too_long, unlimited
from slackwater.adapters.celery.successors import Successors
from slackwater.adapters.celery.sweeping import Sweeping
from slackwater.adapters.clock import SystemClock
from slackwater.adapters.embedded import follow_parent
from slackwater.compose import open_store
from slackwater.core.dead_letter import DeadLetter
from slackwater.core.lane import Lane, by_name, find
from slackwater.core.liveness import Owner
from slackwater.core.schedule import Schedule
from slackwater.engine.dead_workers import DeadWorkers
from slackwater.errors import BrokerUnavailable, ConfigurationError
from slackwater.ports import Clock, Recovery, Store
from slackwater.settings import Settings

log = structlog.get_logger("slackwater.worker")
_ATTRIBUTE = "slackwater"
EXIT_BAD_INPUT = 2
NAMED = 5
"""How many tasks a note names."""


class Slackwater:
    """A Celery application's lanes, schedule and guard.

    Made once, beside the application, before its tasks. It sets queues, routes and delivery settings from the lanes,
    guards every task, and connects to the workers' signals. The store is opened when it is first needed, in each
    process for itself.
    """

    def __init__(
        self,
        app: Celery,
        *,
        store: str | Store | None = None,
        lanes: Sequence[Lane],
        schedule: Schedule | None = None,
        prefix: str = "",
        settings: Settings | None = None,
    ) -> None:
        """Put Slackwater around an application.

        Args:
            app: Celery's application, with broker and result backend.
            store: `postgresql://...`, or a store; None reads `SLACKWATER_STORE_URL`, which takes precedence over a URL.
            lanes: At least one.
            schedule: What runs when; None for nothing.
            prefix: Put before queue names and the store's schema: two environments can share a broker and a database.
            settings: How the processes behave; None reads the environment (`SLACKWATER_*`).

        Raises:
            ConfigurationError: Settings that conflict; all of them, one line each.
        """
        self.app = app
        self.lanes: Mapping[str, Lane] = by_name(lanes)
        self.schedule = schedule or Schedule()
        self.settings = settings or Settings.from_environment(os.environ)
        self.clock: Clock = SystemClock(tempo=self.settings.tempo)
        self.queues: Mapping[str, str] = queues_of(self.lanes, prefix=prefix)
        self._prefix = prefix
        self._store = store if store is not None and not isinstance(store, str) else None
        self._address = self.settings.store_url or (store if isinstance(store, str) else None)
        self._opening = Lock()
        configure(app, self.lanes, prefix=prefix, delivery_limit=self.settings.rabbitmq_delivery_limit)
        successors = Successors()
        self._guard = Guard(app=app, clock=self.clock, store=lambda: self.store, successors=successors)
        self._seam = Seam(
            app=app, clock=self.clock, lane_of=self.lane_of, expire=self._guard.expire, successors=successors
        )
        install(app, self._seam)
        registry: Any = app  # the stubs leave the registry out
        registry._tasks = GuardedRegistry(registry._tasks, self._guard)
        setattr(app, _ATTRIBUTE, self)
        _connect(self)

    @classmethod
    def of(cls, app: Celery) -> Slackwater:
        """Return the Slackwater around an application.

        Raises:
            ConfigurationError: There is none.
        """
        found = getattr(app, _ATTRIBUTE, None)
        if not isinstance(found, cls):
            raise ConfigurationError(
                f"application {app.main or app!r} has no Slackwater; add sw = Slackwater(app, store=..., lanes=[...])"
            )
        return found

    @property
    def store(self) -> Store:
        """Return the store, opened in this process.

        Raises:
            ConfigurationError: No store is given, or one of no known kind.
        """
        with self._opening:
            if self._store is None:
                if self._address is None:
                    raise ConfigurationError(
                        "no store given; pass Slackwater(app, store='postgresql://...') or set SLACKWATER_STORE_URL"
                    )
                self._store = open_store(self._address, prefix=self._prefix)
            return self._store

    @property
    def realm(self) -> str:
        """Return whose workers sweep for each other: an environment of one application, on one broker."""
        return f"{self._prefix}{self.app.main or ''}"

    def dead_workers(self, recovery: Recovery, *, itself: Owner | None = None) -> DeadWorkers:
        """Put the sweeper of dead workers together.

        Args:
            recovery: What holds their messages; a connection of this sweeper's own.
            itself: The worker process that it lives in; None for none.
        """
        return DeadWorkers(
            presence=self.store.presence,
            recovery=recovery,
            leases=_Leases(self),
            clock=self.clock,
            lives_for=self.settings.presence_lives_for,
            frozen_after=self.settings.frozen_after,
            itself=lambda: itself,
        )

    def broker_letters(self, bury: Callable[[DeadLetter], None]) -> Callable[[], int]:
        """Return what drains the broker's own dead letters, one batch a call; see `BrokerLetters` and `Drain`.

        Args:
            bury: Keeps a dead letter; must be safe to repeat for a job.
        """
        lanes = {queue: lane for lane, queue in self.queues.items()}
        letters = BrokerLetters(app=self.app, guard=self._guard, bury=bury, lane_of=lanes.get, clock=self.clock)
        drain = Drain(self.app, prefix=self._prefix)
        return lambda: drain.drain(letters.end)

    def lane_of(self, task: str) -> str | None:
        """Return the lane of a task by its name; None for a task without lane, or one that is not registered."""
        lane = getattr(self.app.tasks.get(task), "lane", None)
        return lane if lane in self.lanes else None

    def fan_out(self, task: AnyTask, items: Iterable[Sequence[Any] | Mapping[str, Any]]) -> FanOut:
        """Publish one job of a task for each item (its args, or its kwargs), in batches.

        In the body of a job the ids are deterministic: the body may run twice. In an occurrence each job carries its
        `start_by`, and is known by id from before it is published.

        Raises:
            BrokerUnavailable: Not confirmed after several tries.
            ConfigurationError: The task keeps no result, so nothing could tell how its jobs end.
        """
        if getattr(task, "ignore_result", False):
            raise ConfigurationError(
                f"task {task.name}: a fan-out's jobs are followed by their results; remove ignore_result=True"
            )
        fan_outs = FanOuts(
            app=self.app, seam=self._seam, store=lambda: self.store, clock=self.clock, batch=self.settings.publish_batch
        )
        return fan_outs.publish(task, items)

    def on_published(self, listener: Listener) -> Listener:
        """Call a function with each batch of jobs that the broker has confirmed (usable as a decorator)."""
        self._seam.listeners.append(listener)
        return listener

    def check(self) -> None:
        """Make sure that the application can run as it is.

        Raises:
            ConfigurationError: All that is wrong: conflicting settings, tasks in unknown lanes, entries without task.
        """
        self.app.finalize(auto=True)
        self.app.loader.import_default_modules()
        if found := [*conflicts(self.app), *self._unknown_lanes(), *self._unknown_tasks()]:
            raise ConfigurationError(*found)

    def check_broker(self, lanes: Iterable[str]) -> None:
        """Make sure that RabbitMQ will do what lanes need; nothing is asked of Valkey.

        Args:
            lanes: Those whose jobs' time limits are compared with RabbitMQ's consumer timeout.

        Raises:
            ConfigurationError: Queues that are there with other arguments, jobs that may run too long.
        """
        if is_redis(self.app):
            return
        found = too_long(self.app, self._tasks_of(lanes), timeout=self.settings.rabbitmq_consumer_timeout)
        try:
            found += refused_queues(self.app)
        except BrokerUnavailable as error:
            # A worker waits for its broker; it is no mistake of the application's.
            log.warning("queues not compared with the broker's", error=str(error))
        if found:
            raise ConfigurationError(*found)

    def _tasks_of(self, lanes: Iterable[str]) -> dict[str, str]:
        """Return the lane of each task that is in one of these lanes."""
        wanted = set(lanes)
        return {name: lane for name in sorted(self.app.tasks) if (lane := self.lane_of(name)) in wanted and lane}

    def notes(self) -> list[str]:
        """List what is allowed and may still surprise: tasks that opt out of a delivery setting, or have no lane."""
        own = {name: task for name, task in sorted(self.app.tasks.items()) if not name.startswith("celery.")}
        early = [
            f"task {name}: acks_late=False; it is lost when its worker dies"
            for name, task in own.items()
            if self.lane_of(name) and not task.acks_late
        ]
        if not is_redis(self.app):
            early += unlimited(self.app, self._tasks_of(self.lanes), timeout=self.settings.rabbitmq_consumer_timeout)
        without = [name for name, task in own.items() if getattr(task, "lane", None) is None]
        if not without:
            return early
        more = f" and {len(without) - NAMED} more" if len(without) > NAMED else ""
        named = ", ".join(without[:NAMED])
        return [*early, f"no lane has {named}{more}: no lane's worker or reading knows of them; give each lane=..."]

    def _unknown_lanes(self) -> list[str]:
        found: list[str] = []
        for name, task in sorted(self.app.tasks.items()):
            lane = getattr(task, "lane", None)
            if lane is None or lane in self.lanes:
                continue
            try:
                find(self.lanes, str(lane), asked_by=f"task {name}")
            except ConfigurationError as error:
                found += error.findings
        return found

    def _unknown_tasks(self) -> list[str]:
        found = []
        for name, entry in self.schedule.entries.items():
            task = entry.task or name
            if task in self.app.tasks:
                continue
            near = difflib.get_close_matches(task, self.app.tasks, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "import its module, or name it with Entry(task=...)"
            found.append(f"entry {name!r}: no task is registered as {task!r}; {hint}")
        return found


class _Leases:
    """The leases of a store that keeps some."""

    def __init__(self, sw: Slackwater) -> None:
        self._sw = sw

    def lapse_all(self, boot: UUID) -> None:
        runs = getattr(self._sw.store, "runs", None)
        if runs is not None:
            runs.lapse_all(boot)


def _connect(sw: Slackwater) -> None:
    """Follow the signals of this application's workers. Receivers are kept by the application, not by the module."""
    lives: dict[str, _Life] = {}

    def initialised(sender: Any = None, instance: Any = None, options: Any = None, **_: Any) -> None:
        if instance.app is not sw.app:
            return
        lives[str(sender)] = life = _Life(sw, Owner(worker=str(sender), boot=uuid4()))
        own(sw.app, life.owner)
        _refuse(sw, lanes=_consumed(sw, (options or {}).get("queues")))

    def owner_here() -> Owner | None:
        return next((life.owner for life in lives.values()), None)

    def ready(sender: Any = None, **_: Any) -> None:
        if sender.app is not sw.app:
            return
        worker = str(sender.hostname)
        # A worker that a test starts inside of its own process sends no celeryd_init.
        life = lives.setdefault(worker, _Life(sw, Owner(worker=worker, boot=uuid4())))
        life.begin(slots=int(sender.pool.num_processes))

    def shut_down(**_: Any) -> None:
        while lives:
            lives.popitem()[1].end()

    def forked(**_: Any) -> None:
        follow_parent()
        if sw._store is not None:
            sw._store.release_connections()

    sw._receivers = (initialised, ready, shut_down, forked)  # type: ignore[attr-defined]
    signals.celeryd_init.connect(initialised)
    signals.worker_ready.connect(ready)
    signals.worker_shutdown.connect(shut_down)
    signals.worker_process_init.connect(forked)
    enter_at_each_connection(sw.app, owner_of=owner_here, realm=sw.realm)


def _consumed(sw: Slackwater, queues: str | Iterable[str] | None) -> list[str]:
    """Return the lanes that a worker consumes, by its `-Q`; all where it has none."""
    named = set(queues.split(",") if isinstance(queues, str) else queues or ())
    return [lane for lane, queue in sw.queues.items() if not named or queue in named]


def _refuse(sw: Slackwater, *, lanes: Sequence[str]) -> None:
    """End this process with one line a finding where the broker does not fit; a signal's receiver may not raise."""
    try:
        sw.check_broker(lanes)
    except ConfigurationError as error:
        for line in error.findings:
            sys.stderr.write(f"slackwater: {line}\n")
        raise SystemExit(EXIT_BAD_INPUT) from error


class _Life:
    """What runs beside a worker, from when it is ready until its end."""

    def __init__(self, sw: Slackwater, owner: Owner) -> None:
        self._sw, self.owner = sw, owner
        self._beat: Heartbeat | None = None
        self._sweeping: Sweeping | None = None

    def begin(self, *, slots: int) -> None:
        sw = self._sw
        self._beat = Heartbeat(
            worker=self.owner.worker,
            boot=self.owner.boot,
            store=lambda: sw.store,
            counts=lambda: counts_of(sw.app, lanes=sw.queues, lane_of=sw.lane_of, slots=slots),
            clock=sw.clock,
            settings=sw.settings,
        )
        self._beat.start()
        recovery = open_recovery(sw.app, realm=sw.realm)
        sweeper = sw.dead_workers(recovery, itself=self.owner)
        self._sweeping = Sweeping(owner=self.owner, sweeper=sweeper, recovery=recovery, every=sw.settings.sweep_every)
        self._sweeping.start()

    def end(self) -> None:
        """End what runs, and hand back what the worker's own farewell left in its hands."""
        if self._sweeping is not None:
            self._sweeping.stop()
            self._hand_back(self._sweeping.recovery)
        if self._beat is not None:
            self._beat.stop()

    def _hand_back(self, recovery: Recovery) -> None:
        try:
            recovery.restore(self.owner)
            recovery.forget(self.owner)
        except BrokerUnavailable as error:
            log.warning("not handed back, others will find it", worker=self.owner.worker, error=str(error))
        recovery.close()

"""Slackwater around a Celery application: what a user's code touches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, TypeAlias, TypeVar

from celery import Celery

from slackwater.adapters.brokers.dead_letters import Drain
from slackwater.adapters.celery import checks
from slackwater.adapters.celery.broker_letters import BrokerLetters
from slackwater.adapters.celery.bundle_ends import BundleEnds
from slackwater.adapters.celery.canary import add_canary
from slackwater.adapters.celery.configuration import (
    configure,
    queues_of,
)
from slackwater.adapters.celery.delivering import Delivering
from slackwater.adapters.celery.fan_out import AnyTask, FanOut, FanOuts
from slackwater.adapters.celery.fence import Fence, fence_here, fenced
from slackwater.adapters.celery.guarding import GuardedRegistry
from slackwater.adapters.celery.lost_jobs import LostInTransit
from slackwater.adapters.celery.publishing import Listener, install
from slackwater.adapters.celery.worker_life import WorkerLife
from slackwater.adapters.clock import SystemClock
from slackwater.compose import open_store
from slackwater.core.job import HEADER, Mark
from slackwater.core.lane import Lane, by_name
from slackwater.core.liveness import Owner
from slackwater.core.message import Held
from slackwater.core.schedule import Schedule
from slackwater.engine.dead_workers import DeadWorkers
from slackwater.engine.sweeping import QueryAndAct, Round
from slackwater.errors import ConfigurationError
from slackwater.ports import Clock, Recovery, Store
from slackwater.settings import Settings

_ATTRIBUTE = "slackwater"
Found = TypeVar("Found")
SweepAct: TypeAlias = Callable[[Sequence[Found]], "int | None"]


class Slackwater:
    """A Celery application's lanes, schedule and guard.

    Made once, beside the application, before its tasks. It sets queues, routes and delivery settings from the lanes,
    guards every task, and connects to the workers' signals. The store is opened when it is first needed, in each
    process for itself.
    """

    def __init__(  # noqa: PLR0913  # the parts of one application
        self,
        app: Celery,
        *,
        store: str | Store | None = None,
        lanes: Sequence[Lane],
        schedule: Schedule | None = None,
        prefix: str = "",
        settings: Settings | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Put Slackwater around an application.

        Args:
            app: Celery's application, with broker and result backend.
            store: `postgresql://...`, or a store; None reads `SLACKWATER_STORE_URL`, which takes precedence over a URL.
            lanes: At least one.
            schedule: What runs when; None for nothing.
            prefix: Put before queue names and the store's schema: two environments can share a broker and a database.
            settings: How the processes behave; None reads the environment (`SLACKWATER_*`).
            clock: The two clocks; None for the machine's own, at the settings' tempo.

        Raises:
            ConfigurationError: Settings that conflict; all of them, one line each.
        """
        self.app = app
        self.lanes: Mapping[str, Lane] = by_name(lanes)
        self.schedule = schedule or Schedule()
        self.settings = settings or Settings.from_environment(os.environ)
        self.clock: Clock = clock or SystemClock(tempo=self.settings.tempo)
        self.sweepers: dict[str, Round] = {}
        self.queues: Mapping[str, str] = queues_of(self.lanes, prefix=prefix)
        self._prefix = prefix
        self._store = store if store is not None and not isinstance(store, str) else None
        self._address = self.settings.store_url or (store if isinstance(store, str) else None)
        self._opening = Lock()
        configure(app, self.lanes, prefix=prefix, delivery_limit=self.settings.rabbitmq_delivery_limit)
        delivering = Delivering(
            app=app,
            lanes=self.lanes,
            queues=self.queues,
            lane_of=self.lane_of,
            store=lambda: self.store,
            clock=self.clock,
            settings=self.settings,
        )
        self._delivering = delivering
        install(app, delivering.seam)
        registry: Any = app  # the stubs leave the registry out
        registry._tasks = GuardedRegistry(registry._tasks, delivering.deliveries)
        add_canary(app, store=lambda: self.store, clock=self.clock)
        setattr(app, _ATTRIBUTE, self)
        self._worker_life = WorkerLife(
            app=app,
            lanes=self.lanes,
            queues=self.queues,
            lane_of=self.lane_of,
            store=lambda: self.store,
            opened=lambda: self._store,
            clock=self.clock,
            settings=self.settings,
            realm=self.realm,
            dead_workers=self.dead_workers,
            check=self._check_as_worker,
        )
        self._worker_life.follow_signals()

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
            leases=self.store.runs,
            clock=self.clock,
            lives_for=self.settings.presence_lives_for,
            frozen_after=self.settings.frozen_after,
            itself=lambda: itself,
        )

    def broker_letters(self) -> Callable[[], int]:
        """Return what drains the broker's own dead letters, one batch a call; see `BrokerLetters` and `Drain`."""
        lanes = {queue: lane for lane, queue in self.queues.items()}
        letters = BrokerLetters(
            app=self.app,
            ends=self._delivering.ends,
            bury=self._delivering.runs.bury,
            lane_of=lanes.get,
            clock=self.clock,
        )
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
            ConfigurationError: The task has no lane; or it keeps no result, so nothing could tell how its jobs end.
        """
        if self.lane_of(str(task.name)) is None:
            raise ConfigurationError(
                f"task {task.name} has no lane, so nobody need read its queue: a fan-out's jobs run in a lane; "
                "give it lane=..."
            )
        if getattr(task, "ignore_result", False):
            raise ConfigurationError(
                f"task {task.name}: a fan-out's jobs are followed by their results; remove ignore_result=True"
            )
        fan_outs = FanOuts(
            app=self.app,
            seam=self._delivering.seam,
            store=lambda: self.store,
            clock=self.clock,
            announcer=self._delivering.announcer,
            batch=self.settings.publish_batch,
        )
        return fan_outs.publish(task, items)

    def fence(self) -> Fence | None:
        """Return the fence of the body that runs in this thread; None outside of a body that has a lease or a key."""
        return fence_here(lambda: self.store)

    def fenced(self, connection: Any) -> AbstractContextManager[None]:
        """Check the fence at the end of a block, inside a transaction that is committed after it.

        With SQLAlchemy: `with Session(engine) as session, session.begin(), sw.fenced(session): ...`. With Django:
        `with transaction.atomic(), sw.fenced(connection): ...`. The transaction must be on the store's own database.
        Outside of a worker nothing is checked.

        Raises:
            ConfigurationError: The body that runs has neither lease nor key; or the connection is in no transaction.
            StaleFence: The lease is another's by now; the block's transaction is rolled back by it.
        """
        return fenced(connection, lambda: self.store)

    def header(
        self,
        *,
        key: str | None = None,
        lease: str | None = None,
        tenant: str | None = None,
        start_by: datetime | None = None,
    ) -> dict[str, Any]:
        """Return headers that give one job its own key, lease, tenant or `start_by` (calendar clock).

        For `apply_async(headers=...)`, also of a task that names none.
        """
        mark = Mark(published_at=self.clock.run(), key=key, lease=lease, tenant=tenant, start_by=start_by)
        return {HEADER: mark.to_header()}

    def on_published(self, listener: Listener) -> Listener:
        """Call a function with each batch of jobs that the broker has confirmed (usable as a decorator)."""
        self._delivering.seam.listeners.append(listener)
        return listener

    def sweeper(
        self, *, every: timedelta, find: Callable[[], Sequence[Found]], name: str | None = None
    ) -> Callable[[SweepAct[Found]], SweepAct[Found]]:
        """Register a sweeper (reaper, janitor): a query, and the decorated act on what it found.

        The balancer runs it every so often, outside of any job; the act is called only with something found, and must
        be safe to repeat and to run twice at once. It returns how many it recovered, or None for all.

        Args:
            every: How often (calendar clock).
            find: The query; returns what got stuck.
            name: Of the sweeper; the act's own by default.
        """

        def register(act: SweepAct[Found]) -> SweepAct[Found]:
            named = str(name or getattr(act, "__name__", "sweeper"))
            if named in self.sweepers:
                raise ConfigurationError(f"sweeper {named!r} is given twice; give one of them name=...")
            sweeper = QueryAndAct(name=named, find=find, act=act, clock=self.clock)
            self.sweepers[named] = Round(name=named, sweeper=sweeper, every=self.settings.tempo.run_span(every))
            return act

        return register

    def expire_held(self, held: Held) -> None:
        """End a held job whose `start_by` has passed, for whoever waits on its result."""
        self._delivering.letters.expire(held)

    def lost_jobs(self) -> LostInTransit:
        """Return what acts on jobs that were lost while under way."""
        parts = self._delivering
        return LostInTransit(app=self.app, clock=self.clock, runs=parts.runs, ends=parts.ends)

    def bundle_ends(self) -> BundleEnds:
        """Return what ends the jobs that a group or chord waits for in vain."""
        return BundleEnds(app=self.app)

    def adopt_schedule(self, since: datetime | None = None) -> tuple[str, ...]:
        """Count the entries that the store has not seen before from an instant on; it knows the others already.

        A balancer that first looks later publishes what fell due since. Safe to repeat.

        Args:
            since: Instant of the calendar; None takes now.

        Returns:
            The names of those that were new.
        """
        at, known = since or self.clock.calendar(), self.store.occurrences.watermarks()
        new = tuple(name for name in self.schedule.entries if name not in known)
        if new:
            self.store.occurrences.admit([], watermarks=dict.fromkeys(new, at))
        return new

    def check(self) -> None:
        """Make sure that the application can run as it is.

        Raises:
            ConfigurationError: All that is wrong: conflicting settings and routes, tasks in unknown lanes, entries
                without task.
        """
        self.app.finalize(auto=True)
        self.app.loader.import_default_modules()
        found = checks.findings(self.app, self.lanes, self.queues, self.schedule)
        if found:
            raise ConfigurationError(*found)

    def _check_as_worker(self, lanes: Iterable[str]) -> None:
        self.check()
        self.check_broker(lanes)

    def check_broker(self, lanes: Iterable[str]) -> None:
        """Make sure that RabbitMQ will do what lanes need; nothing is asked of Valkey.

        Args:
            lanes: Those whose jobs' time limits are compared with RabbitMQ's consumer timeout.

        Raises:
            ConfigurationError: Queues that are there with other arguments, jobs that may run too long.
        """
        found = checks.broker_findings(
            self.app, self.lanes, lanes, consumer_timeout=self.settings.rabbitmq_consumer_timeout
        )
        if found:
            raise ConfigurationError(*found)

    def notes(self) -> list[str]:
        """List what is allowed and may still surprise: tasks that opt out of a delivery setting, or have no lane."""
        return checks.notes(
            self.app,
            self.lanes,
            self.queues,
            consumer_timeout=self.settings.rabbitmq_consumer_timeout,
            found_within=self.settings.found_within,
        )

"""Slackwater around a Celery application: what a user's code touches."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from threading import Lock
from typing import Any

from celery import Celery, signals

from slackwater.adapters.celery.configuration import configure, conflicts, misrouted, own_queue, queues_of, routed_queue
from slackwater.adapters.celery.fan_out import AnyTask, FanOut, FanOuts
from slackwater.adapters.celery.guarding import Guard, GuardedRegistry
from slackwater.adapters.celery.presence import Heartbeat, counts_of
from slackwater.adapters.celery.publishing import Listener, Seam, install
from slackwater.adapters.celery.successors import Successors
from slackwater.adapters.clock import SystemClock
from slackwater.adapters.embedded import follow_parent
from slackwater.compose import open_store
from slackwater.core.lane import Lane, by_name, find
from slackwater.core.schedule import Schedule
from slackwater.errors import ConfigurationError
from slackwater.ports import Clock, Store
from slackwater.settings import Settings

_ATTRIBUTE = "slackwater"
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
        configure(app, self.lanes, prefix=prefix)
        successors = Successors()
        guard = Guard(app=app, clock=self.clock, store=lambda: self.store, successors=successors)
        self._seam = Seam(app=app, clock=self.clock, lane_of=self.lane_of, expire=guard.expire, successors=successors)
        install(app, self._seam)
        registry: Any = app  # the stubs leave the registry out
        registry._tasks = GuardedRegistry(registry._tasks, guard)
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
            app=self.app, seam=self._seam, store=lambda: self.store, clock=self.clock, batch=self.settings.publish_batch
        )
        return fan_outs.publish(task, items)

    def on_published(self, listener: Listener) -> Listener:
        """Call a function with each batch of jobs that the broker has confirmed (usable as a decorator)."""
        self._seam.listeners.append(listener)
        return listener

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
        routes = misrouted(self.app, self.queues)
        if found := [*conflicts(self.app), *routes, *self._unknown_lanes(), *self._unknown_tasks()]:
            raise ConfigurationError(*found)

    def notes(self) -> list[str]:
        """List what is allowed and may still surprise: tasks that opt out of a delivery setting, or have no lane."""
        own = {name: task for name, task in sorted(self.app.tasks.items()) if not name.startswith("celery.")}
        early = [
            f"task {name}: acks_late=False; it is lost when its worker dies"
            for name, task in own.items()
            if self.lane_of(name) and not task.acks_late
        ]
        return [*early, *self._without_lane(own)]

    def _without_lane(self, tasks: Mapping[str, Any]) -> list[str]:
        by_queue: dict[str, list[str]] = {}
        for name, task in tasks.items():
            if getattr(task, "lane", None) is None:
                queue = own_queue(task) or routed_queue(self.app, name) or str(self.app.conf.task_default_queue)
                by_queue.setdefault(queue, []).append(name)
        lanes = {queue: lane for lane, queue in self.queues.items()}
        return [_laneless(names, queue, read_by=lanes.get(queue)) for queue, names in by_queue.items()]

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


def _laneless(names: Sequence[str], queue: str, *, read_by: str | None) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    named = f"{', '.join(names[:NAMED])}{more}"
    has, goes = ("task", "has no lane: it goes") if len(names) == 1 else ("tasks", "have no lane: they go")
    if read_by is not None:
        return f"{has} {named} {goes} to the queue of lane {read_by}, uncounted; give each lane={read_by!r}"
    return f"{has} {named} {goes} to queue {queue}, which no lane's worker reads; give each lane=..."


def _connect(sw: Slackwater) -> None:
    """Follow the signals of this application's workers. Receivers are kept by the application, not by the module."""
    beats: list[Heartbeat] = []

    def ready(sender: Any = None, **_: Any) -> None:
        if sender.app is not sw.app:
            return
        slots = int(sender.pool.num_processes)
        beat = Heartbeat(
            worker=str(sender.hostname),
            store=lambda: sw.store,
            counts=lambda: counts_of(sw.app, lanes=sw.queues, lane_of=sw.lane_of, slots=slots),
            clock=sw.clock,
            settings=sw.settings,
        )
        beat.start()
        beats.append(beat)

    def shut_down(**_: Any) -> None:
        while beats:
            beats.pop().stop()

    def forked(**_: Any) -> None:
        follow_parent()
        if sw._store is not None:
            sw._store.release_connections()

    sw._receivers = (ready, shut_down, forked)  # type: ignore[attr-defined]
    signals.worker_ready.connect(ready)
    signals.worker_shutdown.connect(shut_down)
    signals.worker_process_init.connect(forked)

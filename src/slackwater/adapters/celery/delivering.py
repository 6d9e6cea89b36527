"""The parts of one application's delivery, put together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from celery import Celery
from celery.app.task import Context

from slackwater.adapters.celery.announcing import Announcer
from slackwater.adapters.celery.bodies import has_key_here
from slackwater.adapters.celery.boot import boot_of
from slackwater.adapters.celery.bundling import Bundler
from slackwater.adapters.celery.deliveries import Deliveries
from slackwater.adapters.celery.ends import Ends
from slackwater.adapters.celery.letters import Letters
from slackwater.adapters.celery.publishing import Seam
from slackwater.adapters.celery.successors import Successors
from slackwater.core.job import Mark
from slackwater.core.lane import Lane
from slackwater.engine.job_run import JobRuns
from slackwater.engine.lateness import Lateness
from slackwater.ports import Clock, Store
from slackwater.settings import Settings


@dataclass(kw_only=True)
class Delivering:
    """Publish seam, announcer and deliveries of one application.

    Attributes:
        app: The application.
        lanes: Its lanes, by name.
        queues: Their queues, by lane.
        lane_of: Lane of a task, by its name.
        store: Gives the store, opened in the process that asks.
        clock: The two clocks.
        settings: How the processes behave.
    """

    app: Celery
    lanes: Mapping[str, Lane]
    queues: Mapping[str, str]
    lane_of: Callable[[str], str | None]
    store: Callable[[], Store]
    clock: Clock
    settings: Settings
    runs: JobRuns = field(init=False)
    ends: Ends = field(init=False)
    seam: Seam = field(init=False)
    announcer: Announcer = field(init=False)
    letters: Letters = field(init=False)
    deliveries: Deliveries = field(init=False)

    def __post_init__(self) -> None:
        settings, successors = self.settings, Successors()
        self.runs = runs = JobRuns(
            store=self.store,
            patience=settings.store_patience,
            pause=time.sleep,
            full_per_cause=settings.full_letters_per_cause,
        )
        lateness = Lateness(clock=self.clock, store=self.store)
        self.ends = ends = Ends(app=self.app, clock=self.clock, runs=runs, key_of=self._key_of)
        self.letters = letters = Letters(
            app=self.app,
            lane_of=self.lane_of,
            clock=self.clock,
            lateness=lateness,
            runs=runs,
            ends=ends,
            later=settings.later,
        )
        self.announcer = Announcer(
            app=self.app,
            lanes=self.lanes,
            store=self.store,
            clock=self.clock,
            ends=ends,
            pending_for=settings.pending_for,
        )
        bundler = Bundler(
            app=self.app,
            store=self.store,
            clock=self.clock,
            lane_of=self.lane_of,
            queues=frozenset(self.queues.values()),
            wanted=settings.watch_bundles,
        )
        self.seam = Seam(
            app=self.app,
            clock=self.clock,
            lateness=lateness,
            lane_of=self.lane_of,
            expire=ends.expire,
            successors=successors,
            keep=letters.keep,
            is_taken=self.announcer.is_taken,
            has_key=has_key_here,
            bundler=bundler,
        )
        self.deliveries = Deliveries(
            lanes=self.lanes,
            clock=self.clock,
            lateness=lateness,
            runs=runs,
            ends=ends,
            letters=letters,
            successors=successors,
            bundler=bundler,
            boot=lambda: boot_of(self.app),
            lease_lives_for=settings.lease_lives_for,
        )

    def _key_of(self, task: str, context: Context, mark: Mark | None) -> str | None:
        known = self.app.tasks.get(task)
        if known is None:
            return None
        rule = self.announcer.key_of(known, context.args or (), context.kwargs or {}, mark=mark)
        return None if rule is None else rule.name

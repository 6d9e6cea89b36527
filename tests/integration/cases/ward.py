"""One application whose workers a test starts, hurts and ends by itself."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest
from tests.integration.cases.application import MODULE, effects, make
from tests.integration.celery.application import Place
from tests.integration.celery.spine import Spine, close, eventually, remove_queues
from tests.programs import Program, running

from slackwater import Slackwater
from slackwater.adapters.brokers import open_gauge
from slackwater.adapters.brokers.recovery import open_recovery
from slackwater.core.reading import QueueReading

EXITS_WITHIN_S = 60
STOCK = "tests.integration.cases.stock"
POOLS = {"heavy": "prefork", "waiting": "threads"}

_RABBITMQ = pytest.mark.rabbitmq
lanes = pytest.mark.parametrize("lane", ["heavy", "waiting"])
"""Each pool on each broker: for what depends on how both hand over and give back."""
pairs = pytest.mark.parametrize(
    ("broker_url", "lane"),
    [("valkey", "heavy"), pytest.param("rabbitmq", "waiting", marks=_RABBITMQ)],
    indirect=["broker_url"],
)
"""Each pool and each broker once: for what depends on either alone."""
other_pairs = pytest.mark.parametrize(
    ("broker_url", "lane"),
    [("valkey", "waiting"), pytest.param("rabbitmq", "heavy", marks=_RABBITMQ)],
    indirect=["broker_url"],
)
"""As `pairs`, the other way round."""


@dataclass(frozen=True, kw_only=True)
class Ward(Spine):
    """The application, and what its bodies did."""

    @contextmanager
    def worker(
        self, name: str, *, lane: str = "heavy", slots: int = 1, options: tuple[str, ...] = (), **env: str
    ) -> Iterator[Program]:
        """Run Celery's own worker on a lane's queue, and wait until it is there; killed at the end if it still runs."""
        line = ["celery", "-A", MODULE, "worker", "-Q", self.sw.queues[lane], "-c", str(slots), "-P", POOLS[lane]]
        line += ["-n", f"{name}@here", "--without-mingle", "--without-gossip", *options]
        before = {one.boot for one in self.sw.store.presence.all()}
        with running(*line, env={**os.environ, **self.place.environment, **env}, log=self.file(f"{name}.log")) as run:
            eventually(lambda: self._is_there(name, before), within_s=60, otherwise=lambda: self.said(name))
            yield run

    @contextmanager
    def stock_worker(self, name: str, **env: str) -> Iterator[Program]:
        """Run a plain Celery worker of one slot on the heavy lane's queue; see `stock` for its options."""
        line = ("celery", "-A", STOCK, "worker", "-c", "1", "-n", f"{name}@here")
        with running(*line, env={**os.environ, **self.place.environment, **env}, log=self.file(f"{name}.log")) as run:
            yield run

    def lost_application(self) -> Slackwater:
        """Return the application with a broker that nobody answers for."""
        scheme = self.place.broker_url.partition("://")[0]
        return make(replace(self.place, broker_url=f"{scheme}://127.0.0.1:1//"))

    def _is_there(self, name: str, before: set[Any]) -> bool:
        return any(one.worker == f"{name}@here" and one.boot not in before for one in self.sw.store.presence.all())

    def said(self, name: str) -> str:
        """Return the end of a worker's log."""
        return self.file(f"{name}.log").read_text()[-3000:]

    def holder(self, job: str, *runs: Program) -> Program:
        """Wait until a job's body runs; return the worker that runs its latest one."""
        *_, ran = eventually(lambda: self.runs(job), within_s=60)
        above = {ran["pid"], *(each.pid for each in psutil.Process(ran["pid"]).parents())}
        return next(run for run in runs if run.pid in above)

    def queue(self, lane: str) -> QueueReading:
        gauge = open_gauge(self.sw.app, management_url=self.sw.settings.rabbitmq_management_url)
        return gauge.read([self.sw.queues[lane]])[self.sw.queues[lane]]

    def unacked(self) -> int:
        """Return how many messages lie in owners' hands on Valkey."""
        recovery = open_recovery(self.sw.app, realm=self.sw.realm)
        try:
            return sum(recovery.owners().values())
        finally:
            recovery.close()

    def committed(self) -> list[tuple[str, int]]:
        """Return the rows that bodies committed: job and fence."""
        with effects(self.place) as connection:
            return connection.execute("SELECT job, fence FROM effects").fetchall()

    def make_effects(self) -> None:
        with effects(self.place) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS effects (job text, fence bigint)")
            connection.execute("DELETE FROM effects")


@contextmanager
def ward_at(place: Place) -> Iterator[Ward]:
    """Make the application, with its store's tables."""
    Path(place.folder).mkdir(exist_ok=True)
    sw = make(place)
    sw.store.migrate()
    ward = Ward(place=place, sw=sw)
    ward.make_effects()
    yield ward
    remove_queues(sw, prefix=place.prefix)
    # Results in circles talk to the backend when they are collected: while it is there.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
        close(sw)
        gc.collect()

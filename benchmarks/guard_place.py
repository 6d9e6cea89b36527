"""Where `guard.py` measures: servers, workers and queues on one broker."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import kombu

from slackwater import processes
from slackwater.local import Child, Data, RunFolder, Servers, Supervisor

POLL_S = 0.05
PATIENCE_S = 120.0


@dataclass(kw_only=True)
class Place:
    """Servers, workers and queues of the measurement on one broker."""

    supervisor: Supervisor
    run: RunFolder
    env: dict[str, str]
    folder: Path
    broker_url: str
    app_module: Any
    started: set[str] = field(default_factory=set)

    @classmethod
    @contextmanager
    def open(cls, *, broker_url: str | None) -> Iterator[Place]:
        """Start the servers; at the end stop everything and remove the queues."""
        with (
            tempfile.TemporaryDirectory() as folder,
            RunFolder(Path(folder) / "run", now=datetime.now(UTC), data=Data.DISCARD) as run,
            Supervisor(run) as supervisor,
        ):
            servers = Servers.start(run.path, supervisor, broker_url=broker_url)
            env = processes.environment(servers, base={})
            env |= {"GUARD_PREFIX": f"guard{uuid4().hex[:8]}_", "GUARD_FOLDER": folder}
            os.environ.update(env)
            sys.modules.pop("guard_app", None)
            import guard_app

            guard_app.sw.store.migrate()
            # The publisher's own: each job confirmed by itself would take longer than to run it.
            for app in (guard_app.sw.app, guard_app.plain):
                app.conf.broker_transport_options = {}
            place = cls(
                supervisor=supervisor,
                run=run,
                env=env,
                folder=Path(folder),
                broker_url=servers.broker_url,
                app_module=guard_app,
            )
            try:
                yield place
            finally:
                supervisor.stop(*place.started)
                place._remove_queues()
                guard_app.sw.store.close()
                guard_app.sw.app.close()
                guard_app.plain.close()

    @property
    def sw(self) -> Any:
        """Return the application with its guard."""
        return self.app_module.sw

    def start_worker(self, lane: str, *, pool: str, slots: int, name: str = "", **env: str) -> int:
        """Start Celery's own worker on a lane's queue, and wait until it has done a job."""
        name = name or f"{lane}-{pool}"
        words = ["celery", "-A", "guard_app:app", "worker", "-Q", self.sw.queues[lane], f"--pool={pool}"]
        words += ["-c", str(slots), "-n", f"{name}@here", "-O", "fair", "--without-mingle", "--without-gossip"]
        words += ["--loglevel=WARNING"]
        variant = "plain" if lane == "plain" else "guarded"
        child: Child = processes.python(
            f"worker-{name}", words, env={**self.env, "GUARD_VARIANT": variant, **env}, logs=self.run.logs
        )
        self.started.add(child.name)
        pid = self.supervisor.start(child)
        app = self.app_module.plain if lane == "plain" else self.sw.app
        app.send_task(f"{lane}.nothing", (time.time_ns(),), queue=self.sw.queues[lane])
        self.await_that(lambda: self.depth(lane) == 0, f"{name} does not consume")
        return pid

    def stop_worker(self, name: str) -> None:
        """Stop one worker."""
        self.supervisor.stop(f"worker-{name}")

    def publish(self, task: str, items: Sequence[tuple[Any, ...]]) -> None:
        """Publish a job of a task for each item, as its variant does."""
        lane = task.partition(".")[0]
        if lane != "plain":
            self.sw.fan_out(self.sw.app.tasks[task], items)
            return
        app = self.app_module.plain
        with app.producer_or_acquire() as producer, producer.batch(1_000):
            for item in items:
                app.tasks[task].apply_async(item, producer=producer)

    def depth(self, lane: str) -> int:
        """Return how many messages wait in a lane's queue."""
        with self.sw.app.connection_or_acquire() as connection:
            queue = self.sw.queues[lane]
            try:
                return int(connection.default_channel.queue_declare(queue, passive=True).message_count)
            except connection.channel_errors:
                return 0

    def waiting_at(self, gate: str) -> int:
        """Count the bodies that wait at a gate."""
        return len(self.lines(f"{gate}.waiting"))

    def lines(self, name: str) -> list[str]:
        """Return the lines of a file that bodies write."""
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []

    def open_gate(self, gate: str) -> None:
        """Let the bodies go that wait at a gate."""
        (self.folder / gate).touch()

    def await_that(self, holds: Callable[[], bool], otherwise: str) -> None:
        """Wait until something holds; end the measurement where it does not, or a process has died."""
        until = time.monotonic() + PATIENCE_S
        while not holds():
            if (died := self.supervisor.poll()) is not None:
                raise SystemExit(died.sentence)
            if time.monotonic() > until:
                raise SystemExit(f"not within {PATIENCE_S:g} s: {otherwise}; logs are in {self.run.logs}")
            time.sleep(POLL_S)

    def bury_one(self) -> None:
        """Wait until one worker's death is noticed, which is no mishap then."""
        until = time.monotonic() + PATIENCE_S
        while self.supervisor.poll() is None and time.monotonic() < until:
            time.sleep(POLL_S)

    def _remove_queues(self) -> None:
        names = [*self.sw.queues.values(), f"{self.env['GUARD_PREFIX']}dead_letters"]
        with kombu.Connection(self.broker_url) as connection:
            for name in names:
                for remove in ("queue_delete", "exchange_delete"):
                    try:
                        getattr(connection.default_channel, remove)(name)
                    except (*connection.channel_errors, AttributeError):
                        connection.close()

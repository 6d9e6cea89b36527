"""The application in the tests' hands: publishing, looking, waiting."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from kombu.exceptions import OperationalError
from tests import waiting
from tests.integration.celery.application import MODULE, Place, make
from tests.programs import Program, running

from slackwater import Occurrence, OccurrenceState, Slackwater, Tempo
from slackwater.adapters.brokers.queues import DEAD_LETTERS
from slackwater.adapters.celery.publisher import CeleryPublisher
from slackwater.core.job import HEADER, Mark
from slackwater.core.reading import Presence

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ENDED = frozenset({"SUCCESS", "FAILURE", "REVOKED"})
AN_HOUR = timedelta(hours=1)

eventually = partial(waiting.eventually, within_s=90)


def close(sw: Slackwater) -> None:
    """Close what an application has opened in this process."""
    backend: Any = sw.app.backend
    backend.result_consumer.stop()
    # A result that is collected later would still unsubscribe, from a server that is gone by then.
    backend.result_consumer.cancel_for = lambda _: None
    backend.client.close()
    sw.app.close()
    sw.store.close()


def remove_queues(sw: Slackwater, *, prefix: str) -> None:
    """Take an application's queues off its broker; a RabbitMQ of few file descriptors has room for few."""
    names = [*sw.queues.values(), *(one.name for one in sw.app.amqp.queues.values()), f"{prefix}{DEAD_LETTERS}"]
    with suppress(OperationalError, OSError), sw.app.connection_for_write() as connection:
        channel: Any = connection.default_channel
        for name in dict.fromkeys(names):
            channel.queue_delete(name)


@contextmanager
def cli(place: Place, *words: str, log: Path, **env: str) -> Iterator[Program]:
    """Run `slackwater -A (the workers' application) WORDS`; SIGTERM at the end of the block."""
    environment = {**os.environ, **place.environment, **env}
    with running("slackwater", "-v", "-A", MODULE, *words, env=environment, log=log) as run:
        yield run


@dataclass(frozen=True, kw_only=True)
class Spine:
    """One application on one broker, its workers alive."""

    place: Place
    sw: Slackwater
    name: str = field(default="")

    @property
    def tasks(self) -> Any:
        return self.sw.app.tasks

    @cached_property
    def behind(self) -> Slackwater:
        """The same application with a clock that is an hour behind: what it publishes in time arrives late."""
        return make(self.place, tempo=Tempo(run_origin=EPOCH, calendar_origin=EPOCH - AN_HOUR, rate=1.0))

    def late_header(self) -> dict[str, Any]:
        """Return a mark that is in time for `behind`, and half an hour late for the workers."""
        return self.header(start_by=self.behind.clock.calendar() + AN_HOUR / 2)

    def header(self, **values: Any) -> dict[str, Any]:
        return {HEADER: Mark(published_at=self.sw.clock.run(), **values).to_header()}

    def runs(self, job: str) -> list[Any]:
        """Return what a job's bodies noted, one entry a run."""
        return self._lines(f"{job}.ran")

    def preruns(self, job: str) -> list[Any]:
        return self._lines(f"{job}.prerun")

    def retried(self, job: str) -> list[Any]:
        return self._lines(f"{job}.retried")

    def _lines(self, name: str) -> list[Any]:
        file = Path(self.place.folder) / name
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def file(self, name: str) -> Path:
        return Path(self.place.folder) / name

    def open(self, gate: str) -> None:
        (Path(self.place.folder) / gate).touch()

    def meta(self, job: str) -> Any:
        return self.sw.app.backend.get_task_meta(job, cache=False)

    def ended(self, job: str) -> Any:
        """Wait for a job's end; return its record in the result backend."""
        eventually(lambda: self.meta(job)["status"] in ENDED, otherwise=lambda: f"{self.meta(job)} {self.runs(job)}")
        return self.meta(job)

    def done(self, *jobs: str) -> None:
        assert [self.ended(job)["status"] for job in jobs] == ["SUCCESS"] * len(jobs)

    def presence(self, lane: str) -> Presence:
        """Return a sign of life that a lane's worker gave after this call."""
        now = self.sw.clock.run()
        found: list[Presence] = eventually(
            lambda: [one for one in self.sw.store.presence.all() if lane in one.lanes and one.refreshed_at > now]
        )
        return found[0]

    def occurrence(self, task: str, *args: Any, start_in: timedelta = AN_HOUR, elastic: bool = True) -> Occurrence:
        """Admit an occurrence that is due now."""
        now = self.sw.clock.calendar()
        one = Occurrence(
            id=uuid4(),
            entry=f"entry-{uuid4()}",
            task=task,
            args=args,
            lane=self.sw.lane_of(task),
            elastic=elastic,
            due_at=now,
            start_by=now + start_in,
        )
        self.sw.store.occurrences.admit([one], watermarks={})
        return one

    def publish(self, occurrence: Occurrence) -> str:
        CeleryPublisher(app=self.sw.app, clock=self.sw.clock).publish(occurrence)
        self.sw.store.occurrences.advance(occurrence.id, to=OccurrenceState.QUEUED, at=self.sw.clock.run())
        return str(occurrence.id)

    def known(self, occurrence: UUID) -> Occurrence:
        found = self.sw.store.occurrences.get(occurrence)
        assert found is not None
        return found

"""One application without a socket, its clock moved by the test."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery
from celery.app.trace import build_tracer

from slackwater import Lane, Settings, Slackwater, Tempo
from slackwater.adapters.memory import MemoryStore
from slackwater.core.job import HEADER, Mark

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


class Refusing:
    """A store that must not be asked."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the store was asked for {name}")


@dataclass
class Application:
    """An application whose bodies run in this process, through Celery's own tracer."""

    sw: Slackwater

    def add(self, name: str, body: Callable[..., Any]) -> Any:
        make: Any = self.sw.app.task(name=name, lane="till", shared=False, bind=True)
        make(body)
        return self.sw.app.tasks[name]

    def deliver(self, task: Any, *args: Any, mark: Mark | None = None, job: str | None = None) -> str:
        """Do what a worker does with a message; return the job's id."""
        job = job or str(uuid4())
        headers = {} if mark is None else {HEADER: mark.to_header()}
        request = {"id": job, "task": task.name, "args": args, "kwargs": {}, "delivery_info": {}, **headers}
        task.__trace__ = build_tracer(task.name, task, app=self.sw.app)
        task.__trace__(job, args, {}, request)
        return job

    def status(self, job: str) -> str:
        return str(self.sw.app.backend.get_task_meta(job, cache=False)["status"])


@pytest.fixture
def make_application(make_app: Callable[..., Celery]) -> Callable[..., Application]:
    """Make an application around a store; a real tempo, and batches of ten."""

    def make(store: Any = None) -> Application:
        sw = Slackwater(
            make_app(),
            store=store or MemoryStore(),
            lanes=[Lane("till", slots=1)],
            prefix=f"t{uuid4().hex[:8]}_",
            settings=Settings(publish_batch=10, tempo=Tempo.real()),
        )
        return Application(sw)

    return make

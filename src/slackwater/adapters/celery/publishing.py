"""The publish seam: every message of the application passes here, whoever sends it.

Celery builds one sender an application (`AMQP.send_task_message`); delay, apply_async, send_task, canvas, retries and
links all end in it. Ours marks the message, lets the guard decide before it is published, and tells who wants to know
once the broker has confirmed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from celery import Celery, current_task
from celery.app.amqp import AMQP
from celery.exceptions import Ignore

from slackwater.adapters.celery.successors import Successors
from slackwater.core.guard import Expire, may_start
from slackwater.core.job import HEADER, Mark
from slackwater.core.message import STALE_HEADERS, fresh
from slackwater.ports import Clock


@dataclass(frozen=True, kw_only=True)
class Published:
    """A job whose publishing the broker has confirmed.

    Attributes:
        job: Its id.
        task: Its task's name.
        lane: Its lane; None for a queue that is no lane.
        parent: Id of the job whose body published it; None outside of a body.
        mark: What it carries.
    """

    job: str
    task: str
    lane: str | None
    parent: str | None
    mark: Mark

    @property
    def published_at(self) -> datetime:
        """Return when it was handed to the broker (run clock)."""
        return self.mark.published_at


Listener = Callable[[Sequence[Published]], None]


class ExpireJob(Protocol):
    """Ends a job that was never published; False where it runs or has ended under the same id."""

    def __call__(self, *, job: str, task: str, mark: Mark, verdict: Expire, request: Any) -> bool: ...  # noqa: D102


class NotSent(Ignore):
    """A body's own retry came too late to be sent. Ends that body without a word on its result, which is told already.

    Without it `Task.retry` would go on to say RETRY, over the end.
    """


@dataclass(kw_only=True)
class Seam:
    """What happens to each message on its way out."""

    app: Celery
    clock: Clock
    lane_of: Callable[[str], str | None]
    expire: ExpireJob
    successors: Successors
    listeners: list[Listener] = field(default_factory=list)
    _thread: threading.local = field(default_factory=threading.local, init=False)

    def mark(self, headers: dict[str, Any], name: str) -> Mark:
        """Return the mark of a message: its own (a retry keeps it), or the one of the body that publishes it."""
        own = Mark.from_header(headers.get(HEADER))
        now, lane = self.clock.run(), self.lane_of(name)
        if own is not None:
            return replace(own, published_at=now, lane=lane)
        parent = mark_of(current_task.request) if current_task else None
        if parent is None:
            return Mark(published_at=now, lane=lane)
        return replace(parent, published_at=now, lane=lane)

    def confirmed(self, published: Published) -> None:
        """Tell the listeners, or keep it until this thread's batch is confirmed."""
        batch: list[Published] | None = getattr(self._thread, "batch", None)
        if batch is None:
            self._tell([published])
        else:
            batch.append(published)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Hold this thread's news back until the block ends; an error discards it (nothing was confirmed then)."""
        told: list[Published] = []
        self._thread.batch = told
        try:
            yield
        finally:
            self._thread.batch = None
        self._tell(told)

    def _tell(self, told: Sequence[Published]) -> None:
        for listener in self.listeners:
            listener(told)


def mark_of(request: Any) -> Mark | None:
    """Return the mark of the job that runs; None where it has none.

    Celery puts unknown headers on the request as attributes (and some versions into `request.headers` as well).
    """
    return Mark.from_header(getattr(request, HEADER, None) or (getattr(request, "headers", None) or {}).get(HEADER))


def job_uuid(job: str) -> UUID | None:
    """Return a job's id as a UUID; None for an id that is none."""
    try:
        return UUID(job)
    except ValueError:
        return None


def runs_here(job: str) -> bool:
    """Tell whether it is this job's body that runs in this thread."""
    return bool(current_task) and current_task.request.id == job


def install(app: Celery, seam: Seam) -> None:
    """Put the seam into an application's sender."""

    class MarkingAMQP(AMQP):
        """Celery's AMQP with our sender around the stock one."""

        def _create_task_sender(self) -> Callable[..., Any]:
            stock = super()._create_task_sender()  # type: ignore[misc]  # not in the stubs

            def send(producer: Any, name: str, message: Any, **options: Any) -> None:
                _send(seam, stock, producer, name=name, message=message, options=options)

            return send

    app.amqp_cls = MarkingAMQP  # type: ignore[assignment]  # a class will do as well as its name
    app.__dict__.pop("amqp", None)


def _send(
    seam: Seam, stock: Callable[..., Any], producer: Any, *, name: str, message: Any, options: dict[str, Any]
) -> None:
    headers = {**message.headers, **(options.get("headers") or {})}
    mark, job = seam.mark(headers, name), str(headers["id"])
    verdict = may_start(mark, now=seam.clock.calendar())
    if isinstance(verdict, Expire):
        seam.expire(job=job, task=name, mark=mark, verdict=verdict, request=_as_request(headers, message.body))
        if runs_here(job):
            raise NotSent(f"{name} {job}: its retry came after its start_by")
        return

    def hand_over(producer: Any, mark: Mark) -> None:
        for stale in STALE_HEADERS & message.headers.keys():
            del message.headers[stale]
        message.headers[HEADER] = mark.to_header()
        options["headers"] = {**fresh(options.get("headers") or {}), HEADER: mark.to_header()}
        stock(producer, name, message, **options)
        seam.confirmed(Published(job=job, task=name, lane=mark.lane, parent=headers.get("parent_id"), mark=mark))

    def hand_over_later() -> None:
        with seam.app.producer_or_acquire() as own, own.connection._reraise_as_library_errors():
            hand_over(own, replace(mark, published_at=seam.clock.run()))

    if not (runs_here(job) and seam.successors.hold(hand_over_later)):
        hand_over(producer, mark)


def _as_request(headers: dict[str, Any], body: tuple[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    args, kwargs, embed = body
    return {**headers, "args": args, "kwargs": kwargs, "delivery_info": {}, **embed}

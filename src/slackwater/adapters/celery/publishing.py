"""The publish seam: every message of the application passes here, whoever sends it.

Celery builds one sender an application (`AMQP.send_task_message`); delay, apply_async, send_task, canvas, retries and
links all end in it. Ours marks the message, lets the guard decide before it is published, and tells who wants to know
once the broker has confirmed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

import structlog
from celery import Celery, current_task
from celery.app.amqp import AMQP
from celery.exceptions import Ignore

from slackwater.adapters.celery.bundling import Bundler
from slackwater.adapters.celery.successors import Successors
from slackwater.adapters.celery.verbatim import message_published
from slackwater.core.guard import Expire
from slackwater.core.job import HEADER, Mark
from slackwater.core.message import STALE_HEADERS, Message
from slackwater.engine.lateness import Lateness
from slackwater.errors import StoreUnavailable
from slackwater.ports import Clock

log = structlog.get_logger("slackwater.publishing")
OURS = "slackwater."
"""What the names of our own tasks begin with; they are no work of the application's, which is told of none."""
WORTH_KEEPING = timedelta(seconds=0.5)
"""A retry that is due later than that waits in the store; a sooner one is published at once."""


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


class Keep(Protocol):
    """Keeps a job in the store until so much later.

    Raises:
        StoreUnavailable: It could not be kept.
    """

    def __call__(self, sending: Sending, after: timedelta) -> None: ...  # noqa: D102


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
    lateness: Lateness
    lane_of: Callable[[str], str | None]
    expire: ExpireJob
    successors: Successors
    keep: Keep
    is_taken: Callable[[Sending], bool]
    has_key: Callable[[], bool]
    bundler: Bundler
    listeners: list[Listener] = field(default_factory=list)
    _thread: threading.local = field(default_factory=threading.local, init=False)

    def mark(self, headers: dict[str, Any], name: str) -> Mark:
        """Return the mark of a message: its own (a retry keeps it), or the one of the body that publishes it."""
        own = Mark.from_header(headers.get(HEADER))
        now, lane = self.clock.run(), self.lane_of(name)
        if own is not None:
            return replace(own, published_at=now, lane=lane, released=False)
        parent = mark_of(current_task.request) if current_task else None
        if parent is None:
            return Mark(published_at=now, lane=lane)
        return parent.for_child(published_at=now, lane=lane)

    def succeed(self, sending: Sending, after: timedelta) -> None:
        """Send what a body sent under its own id: at once, or kept in the store until its time comes."""
        if after >= WORTH_KEEPING and sending.mark.lane is not None:
            try:
                self.keep(sending, after)
            except StoreUnavailable as error:
                log.warning("retry not kept, published with an ETA", job=sending.job, error=str(error))
            else:
                return
        sending.mark = replace(sending.mark, published_at=self.clock.run())
        if after:
            sending.message.headers["eta"] = (datetime.now(UTC) + after).isoformat()
        with self.app.producer_or_acquire() as producer, producer.connection._reraise_as_library_errors():
            sending.hand_over(producer)

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


def mark_in(request: Mapping[str, Any]) -> Mark | None:
    """Return the mark of a job, by the request that a worker hands to its tracer; None where it has none."""
    return Mark.from_header(request.get(HEADER) or (request.get("headers") or {}).get(HEADER))


def job_uuid(job: str) -> UUID | None:
    """Return a job's id as a UUID; None for an id that is none."""
    try:
        return UUID(job)
    except ValueError:
        return None


def runs_here(job: str) -> bool:
    """Tell whether it is this job's body that runs in this thread."""
    return bool(current_task) and current_task.request.id == job


@dataclass(kw_only=True)
class Sending:
    """One message on its way to the broker, as Celery's sender was given it.

    Attributes:
        seam: What it passes.
        stock: Celery's own sender.
        name: Its task's name.
        message: Celery's task message: headers, properties, body (args, kwargs, embed), event.
        options: The sender's options.
        mark: What it carries.
        repeats: It is the next try of a body with a key, which may have had its effect; so it is never too late.
    """

    seam: Seam
    stock: Callable[..., Any]
    name: str
    message: Any
    options: dict[str, Any]
    mark: Mark = field(init=False)
    repeats: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.message.headers.update(self.options.pop("headers", None) or {})
        for stale in STALE_HEADERS & self.message.headers.keys():
            del self.message.headers[stale]
        self.mark = self.seam.mark(self.message.headers, self.name)

    @property
    def job(self) -> str:
        """Return the job's id."""
        return str(self.message.headers["id"])

    @property
    def request(self) -> dict[str, Any]:
        """Return it as the request that a worker would make of it."""
        return _as_request(self.message.headers, self.message.body)

    @property
    def leads_on(self) -> bool:
        """Tell whether something follows its end: callbacks, the rest of a chain, a group or a chord."""
        *_, embed = self.message.body
        return any(embed.values()) or self.message.headers.get("group") is not None

    def hand_over(self, producer: Any) -> None:
        """Publish it, and tell who wants to know."""
        self.message.headers[HEADER] = self.mark.to_header()
        self.stock(producer, self.name, self.message, **self.options)
        if self.name.startswith(OURS):
            return
        parent = self.message.headers.get("parent_id")
        self.seam.confirmed(Published(job=self.job, task=self.name, lane=self.mark.lane, parent=parent, mark=self.mark))

    def as_message(self) -> Message:
        """Return what would be published, as a value that can be stored."""
        self.message.headers[HEADER] = self.mark.to_header()
        with self.seam.app.producer_or_acquire() as producer:
            return message_published(self.stock, producer, self.name, self.message, **self.options)


def install(app: Celery, seam: Seam) -> None:
    """Put the seam into an application's sender."""

    class MarkingAMQP(AMQP):
        """Celery's AMQP with our sender around the stock one."""

        def _create_task_sender(self) -> Callable[..., Any]:
            stock = super()._create_task_sender()  # type: ignore[misc]  # not in the stubs

            def send(producer: Any, name: str, message: Any, **options: Any) -> None:
                _send(seam, stock, producer, name=name, message=message, options=options)

            return send

    seam.bundler.install()
    app.amqp_cls = MarkingAMQP  # type: ignore[assignment]  # a class will do as well as its name
    app.__dict__.pop("amqp", None)


def _send(
    seam: Seam, stock: Callable[..., Any], producer: Any, *, name: str, message: Any, options: dict[str, Any]
) -> None:
    sending = Sending(seam=seam, stock=stock, name=name, message=message, options=options)
    mark, own = sending.mark, runs_here(sending.job)
    sending.repeats = own and seam.has_key()
    verdict = seam.lateness.verdict(mark, may_have_had_effect=sending.repeats)
    if isinstance(verdict, Expire):
        seam.expire(job=sending.job, task=name, mark=mark, verdict=verdict, request=sending.request)
        if own:
            raise NotSent(f"{name} {sending.job}: its retry came after its start_by")
        return
    if own:
        after = seam.successors.after
        if seam.successors.hold(lambda: seam.succeed(sending, after)):
            return
    elif seam.is_taken(sending):
        return
    seam.bundler.begins(message.headers, message.body[2], sending.options, mark.start_by)
    sending.hand_over(producer)
    seam.bundler.sent(message.headers, message.body[2], sending.options, mark.start_by)


def _as_request(headers: dict[str, Any], body: tuple[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    args, kwargs, embed = body
    return {**headers, "args": args, "kwargs": kwargs, "delivery_info": {}, **embed}

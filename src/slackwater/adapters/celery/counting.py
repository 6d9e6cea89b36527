"""Counting what a worker process does, lane by lane, in its main process."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from billiard.exceptions import Terminated, WorkerLostError
from celery.exceptions import Ignore, Reject, Retry
from celery.utils.imports import symbol_by_name
from celery.worker import state

from slackwater.adapters.celery.verbatim import keep_body
from slackwater.core.reading import LaneCounts


class NotStarted(Ignore):
    """Ends a delivery without its body; travels from the pool to the worker, which acknowledges the message.

    Attributes:
        state: What the job ended as.
        reason: Why.
    """

    def __init__(self, state: str, reason: str) -> None:
        super().__init__(state, reason)
        self.state, self.reason = state, reason


@dataclass
class Tally:
    """Counts by task name, and the jobs whose bodies died. Pools call back from threads of their own: it has a lock."""

    accepted: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    not_started: dict[str, Counter[tuple[str, str]]] = field(default_factory=lambda: defaultdict(Counter))
    lost: dict[str, float] = field(default_factory=dict)
    news: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def lose(self, job: str) -> None:
        """Note a job whose body died with its process; whoever waits for news is woken."""
        with self._lock:
            self.lost.setdefault(job, time.monotonic())
        self.news.set()

    def take_lost(self) -> dict[str, float]:
        """Return the jobs that were lost since the last call, each with the monotonic instant of it."""
        with self._lock:
            lost, self.lost = self.lost, {}
        return lost

    def give_back(self, lost: Mapping[str, float]) -> None:
        """Take back lost jobs that nobody could be told of."""
        with self._lock:
            self.lost = {**lost, **self.lost}

    def accept(self, task: str) -> None:
        """Count a job that a pool has taken."""
        with self._lock:
            self.accepted[task] += 1

    def fail(self, task: str, error: BaseException) -> None:
        """Count how a job ended that did not return."""
        with self._lock:
            if isinstance(error, NotStarted):
                self.not_started[task][error.state, error.reason] += 1
            elif not isinstance(error, (Ignore, Reject, Retry)):
                self.failed[task] += 1

    def of(self, tasks: Iterable[str], *, slots: int, busy: int) -> LaneCounts:
        """Return the counts of one lane's tasks."""
        names = list(tasks)
        with self._lock:
            dropped = sum((self.not_started[name] for name in names if name in self.not_started), Counter())
            accepted = sum(self.accepted[name] for name in names)
            failed = sum(self.failed[name] for name in names)
        started = max(0, accepted - dropped.total())
        expired = {reason: count for (kind, reason), count in dropped.items() if kind == "expired"}
        return LaneCounts(
            slots=slots, busy=busy, started=started, finished=max(0, started - busy), failed=failed, expired=expired
        )


def running_jobs() -> list[str]:
    """Return the ids of the jobs whose bodies this worker process runs now."""
    return [str(request.id) for request in active_requests()]


def busy_by_task() -> Mapping[str, int]:
    """Count the bodies that this worker process runs now, by task name."""
    return Counter(str(request.name) for request in active_requests())


def active_requests() -> list[Any]:
    """Return Celery's requests of the bodies that this worker process runs now, in its pool of whatever kind."""
    return settled(lambda: list(state.active_requests))


def settled(look: Callable[[], list[Any]]) -> list[Any]:
    """Look until nobody added or removed meanwhile: other threads do, which a set's iterator does not allow."""
    while True:
        try:
            return look()
        except RuntimeError:
            continue


def _inner(error: BaseException) -> BaseException:
    """Unwrap what billiard puts around an error to carry its traceback between processes."""
    inner = getattr(error, "exc", None)
    return inner if type(error).__name__ == "ExceptionWithTraceback" and isinstance(inner, BaseException) else error


_TALLY = "slackwater_tally"


def tally_of(app: Any) -> Tally:
    """Return the application's tally in this process."""
    # Made only where there is none: each job is counted.
    tally: Tally = app.__dict__.get(_TALLY) or app.__dict__.setdefault(_TALLY, Tally())
    return tally


def count_requests_of(request: str | type) -> type:
    """Return a subclass of a task's request class: counts accepted and failed jobs, and keeps the body as it came."""
    stock: Any = symbol_by_name(request) if isinstance(request, str) else request
    accept: Callable[..., Any] = stock.on_accepted
    fail: Callable[..., Any] = stock.on_failure

    initialise: Callable[..., None] = stock.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        initialise(self, *args, **kwargs)
        keep_body(self)

    def on_accepted(self: Any, *args: Any, **kwargs: Any) -> Any:
        tally_of(self.app).accept(str(self.name))
        return accept(self, *args, **kwargs)

    def on_failure(self: Any, exc_info: Any, *args: Any, **kwargs: Any) -> Any:
        error = _inner(exc_info.exception)
        tally_of(self.app).fail(str(self.name), error)
        if isinstance(error, (WorkerLostError, Terminated, SystemExit)):
            tally_of(self.app).lose(str(self.id))
        return fail(self, exc_info, *args, **kwargs)

    members = {"__init__": __init__, "on_accepted": on_accepted, "on_failure": on_failure}
    return type("CountedRequest", (stock,), members)

"""The body that runs in this thread: what it was given, and the retry policy around it."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import wraps
from typing import Any

from celery.exceptions import Ignore, Reject, Retry

from slackwater.core.retry import Again, RetryPolicy, next_try
from slackwater.errors import StaleFence

NOTHING = object()


@dataclass
class Body:
    """One body.

    Attributes:
        policy: Its retry policy; None for what the task's own code does.
        key: Its idempotency key; None for none.
        lease: The lease under which it runs; None for none.
        fence: The lease's fencing token; None without lease.
        attempt: Which started delivery of its try it is, from 1, as far as it is known.
        result: What another run of the same work returned, instead of running; `NOTHING` for a body that runs.
        begins: Called at the last moment before it runs; what it raises keeps it from running.
    """

    policy: RetryPolicy | None = None
    key: str | None = None
    lease: str | None = None
    fence: int | None = None
    attempt: int = 1
    result: Any = NOTHING
    begins: Callable[[], None] = lambda: None
    entered: bool = False


_thread = threading.local()


def current_body() -> Body | None:
    """Return the body that runs in this thread; None outside of one."""
    body: Body | None = getattr(_thread, "body", None)
    return body


def has_key_here() -> bool:
    """Tell whether the body that runs in this thread has an idempotency key."""
    body = current_body()
    return body is not None and body.key is not None


@contextmanager
def running(body: Body) -> Iterator[None]:
    """Make a body the one that runs in this thread."""
    _thread.body = body
    try:
        yield
    finally:
        _thread.body = None


def around(task: Any, run: Callable[..., Any]) -> Callable[..., Any]:
    """Return what Celery's tracer calls as a task's body.

    It returns another run's result where the job was resolved to that, and applies the retry policy. A call that is no
    job's own (a task called as a function, an eager one, the inside of Celery's own autoretry) passes through.
    """

    @wraps(run)
    def body(*args: Any, **kwargs: Any) -> Any:
        current = current_body()
        if current is None or current.entered or task.request.called_directly or task.request.is_eager:
            return run(*args, **kwargs)
        current.entered = True
        if current.result is not NOTHING:
            return current.result
        current.begins()
        try:
            if current.policy is None:
                return run(*args, **kwargs)
            return _with_policy(task, current.policy, lambda: run(*args, **kwargs))
        except StaleFence as stale:
            # It has written nothing. Its delivery goes back, if it is not another's by now, to find its work done or do
            # it once the lease is free. No retry: its RETRY could go over the SUCCESS of the body that replaced it.
            raise Reject(stale, requeue=True) from stale

    return body


def _with_policy(task: Any, policy: RetryPolicy, run: Callable[[], Any]) -> Any:
    try:
        return run()
    except (Retry, Ignore, Reject, StaleFence):
        raise
    except Exception as error:
        tries_done = int(task.request.retries) + 1
        decision = next_try(
            policy, error, tries_done=tries_done, chance=random.random, retry_after=retry_after_of(error)
        )
        if not isinstance(decision, Again):
            raise
        raise task.retry(
            exc=error, countdown=decision.after.total_seconds(), max_retries=policy.backoff.tries
        ) from error


def retry_after_of(error: BaseException) -> timedelta | None:
    """Return the wait that a peer asked for: an error's attribute `retry_after`, a timedelta or seconds."""
    given = getattr(error, "retry_after", None)
    if isinstance(given, timedelta):
        return given
    try:
        return None if given is None else timedelta(seconds=float(given))
    except (TypeError, ValueError, OverflowError):
        return None

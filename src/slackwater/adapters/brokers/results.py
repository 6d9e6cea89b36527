"""States of jobs, from Celery's result backend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from celery import Celery, states
from celery.backends.base import DisabledBackend
from celery.backends.redis import RedisBackend
from celery.backends.rpc import RPCBackend
from celery.exceptions import BackendError, TaskRevokedError
from kombu.utils.url import maybe_sanitize_url
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from slackwater.core.job import JobState
from slackwater.errors import BrokerUnavailable, ConfigurationError, PoisonedJob

_PAGE = 1_000

_FAILURES = (OSError, RedisError, SQLAlchemyError, BackendError)
"""What backends raise when their server does not answer."""

_STATES: Mapping[str, JobState] = {
    states.SUCCESS: JobState.DONE,
    states.FAILURE: JobState.FAILED,
    states.STARTED: JobState.RUNNING,
    states.RETRY: JobState.QUEUED,
    states.RECEIVED: JobState.QUEUED,
    "HELD": JobState.HELD,
}


_REVOKED: Mapping[str, JobState] = {"expired": JobState.EXPIRED, "duplicate": JobState.DUPLICATE}
"""What ends with our word as REVOKED, by that word."""


class CeleryResults:
    """Reads states from the application's result backend (the `Results` port).

    From Redis and Valkey in one MGET for a thousand jobs, from others one by one. A state that Celery does not know
    counts as running: only a body can have set it (`update_state`).
    """

    def __init__(self, app: Celery) -> None:
        """Take an application.

        Raises:
            ConfigurationError: It has no result backend, or one that tells results to their publisher alone.
            BrokerUnavailable: The backend is a database, and does not answer.
        """
        with _translated(maybe_sanitize_url(str(app.conf.result_backend))):
            self._backend: Any = app.backend
        if isinstance(self._backend, DisabledBackend):
            raise ConfigurationError("setting result_backend: there is none, so no job's state is known; set redis://")
        if isinstance(self._backend, RPCBackend):
            raise ConfigurationError(
                "setting result_backend: rpc:// tells a result only to the process that published; set redis://"
            )

    def states(self, jobs: Sequence[str]) -> Mapping[str, JobState]:
        """Return the states of those jobs that the backend knows.

        Raises:
            BrokerUnavailable: The backend does not answer.
        """
        with _translated(self._backend.as_uri()):
            return {job: state_of(meta) for job, meta in self._metas(jobs) if meta["status"] != states.PENDING}

    def _metas(self, jobs: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        if not isinstance(self._backend, RedisBackend):
            for job in jobs:
                yield job, self._backend.get_task_meta(job, cache=False)
            return
        for start in range(0, len(jobs), _PAGE):
            page = jobs[start : start + _PAGE]
            values = self._backend.mget([self._backend.get_key_for_task(job) for job in page])
            # Decoded, yet not made into exceptions: that would import the modules that the errors came from.
            yield from ((job, self._backend.decode(value)) for job, value in zip(page, values, strict=True) if value)


def say_unless_ended(backend: Any, job: str, state: str, *, request: Any) -> bool:
    """Write a state of a job that is no end, unless its record says how it has ended.

    On Redis and Valkey no end can come in between (compare-and-set). On others Celery itself leaves a SUCCESS alone.

    Args:
        backend: The application's.
        job: Its id.
        state: As Celery names it.
        request: What is known of it, as Celery's `Context`; None for nothing.

    Returns:
        False where nothing was written.
    """
    if isinstance(backend, RedisBackend):
        known: Any = backend  # the stubs leave most of it out
        return bool(known.ensure(_put_unless_ended, (known, job, state, request)))
    if backend.get_task_meta(job, cache=False)["status"] in states.READY_STATES:
        return False
    backend.store_result(job, None, state, request=request)
    return True


def _put_unless_ended(backend: Any, job: str, state: str, request: Any) -> bool:
    key = backend.get_key_for_task(job)
    meta = backend._get_result_meta(result=None, state=state, traceback=None, request=request)
    record = backend.encode({**meta, "task_id": job})

    def put(watching: Any) -> bool:
        told = watching.get(key)
        if told and backend.decode(told)["status"] in states.READY_STATES:
            return False
        watching.multi()
        watching.set(key, record, ex=backend.expires or None)
        watching.publish(key, record)
        return True

    return bool(backend.client.transaction(put, key, value_from_callable=True))


@contextmanager
def _translated(where: str) -> Iterator[None]:
    try:
        yield
    except _FAILURES as error:
        said = " ".join(str(error).split())[:200].rstrip(".")
        raise BrokerUnavailable(
            f"result backend {where} cannot be read: {said}; see that it runs and that result_backend names it"
        ) from error


def state_of(meta: Mapping[str, Any]) -> JobState:
    """Return a job's state by its record in the backend: a mapping with `status` and `result`."""
    status = meta["status"]
    if status == states.REVOKED:
        return _REVOKED.get(_revocation(meta.get("result")).partition(":")[0], JobState.REVOKED)
    if status == states.FAILURE and _kind(meta.get("result")) == PoisonedJob.__name__:
        return JobState.DEAD
    return _STATES.get(status, JobState.RUNNING)


def _kind(result: object) -> str:
    """Return the kind of an error, from the exception or what it was serialised to."""
    if isinstance(result, Mapping):
        return str(result.get("exc_type"))
    return type(result).__name__


def _revocation(result: object) -> str:
    """Return why a job was revoked, from the exception or what it was serialised to; empty if it is not told."""
    if isinstance(result, TaskRevokedError):
        return str(result)
    if not isinstance(result, Mapping) or result.get("exc_type") != TaskRevokedError.__name__:
        return ""
    message = result.get("exc_message")
    if isinstance(message, Sequence) and not isinstance(message, str):
        return str(message[0]) if message else ""
    return str(message)

"""The guard: stands between a delivery and its body, on every task of the application.

Every task is adopted when it is registered, whatever its class (own base classes and shared tasks too): its class is
swapped for a subclass of itself whose tracer hands each delivery to `Deliveries`. So a job that may not start never
reaches `task_prerun`, and its result never says STARTED.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from celery import Task
from celery.app.registry import TaskRegistry
from celery.exceptions import Reject, Retry

from slackwater.adapters.celery.bodies import around
from slackwater.adapters.celery.counting import count_requests_of
from slackwater.adapters.celery.deliveries import Deliveries, Tracer
from slackwater.adapters.celery.publishing import NotSent


class GuardedRegistry(TaskRegistry):
    """Celery's task registry, which adopts each task that is put into it."""

    def __init__(self, tasks: TaskRegistry, deliveries: Deliveries) -> None:
        super().__init__()
        self._deliveries = deliveries
        for name, task in tasks.items():
            self[name] = task

    def __setitem__(self, name: str, task: Any) -> None:
        adopt(task, self._deliveries)
        super().__setitem__(name, task)


def adopt(task: Any, deliveries: Deliveries) -> None:
    """Swap a task's class for a guarded subclass of it; a task adopted before is left as it is."""
    cls: type[Any] = task.__class__
    if issubclass(cls, _Guarded):
        return
    guarded = type(cls.__name__, (_Guarded, cls), {"__module__": cls.__module__, "__doc__": cls.__doc__})
    # What was set on the task itself (Celery's autoretry does that) would hide behind the guarded class's properties.
    own_run = task.__dict__.pop("run", None)
    task.__class__ = guarded
    task.deliveries_ = deliveries
    task.Request = count_requests_of(task.Request)
    if own_run is not None:
        task.run = own_run


class _Guarded(Task):  # type: ignore[type-arg]  # generic in the stubs alone
    """Wraps the tracer that Celery builds for a task, and the body that the tracer calls."""

    abstract = True
    deliveries_: Deliveries

    @property
    def run(self) -> Callable[..., Any]:
        inner: Callable[..., Any] = self.__dict__.get("guarded_run_") or super().run
        return around(self, inner)

    @run.setter
    def run(self, run: Callable[..., Any]) -> None:
        self.__dict__["guarded_run_"] = run

    def retry(self, *args: Any, **options: Any) -> Any:
        """Retry as Celery does, without an ETA: what comes later waits in the store, not in a worker's memory.

        A retry that comes after `start_by` ends this body, and the job stays expired.
        """
        if self.request.called_directly or self.request.is_eager:
            return super().retry(*args, **options)
        after = _after(self, options.pop("countdown", None), options.pop("eta", None))
        try:
            with self.deliveries_.successors.delayed(after):
                told: Any = super().retry(*args, **{**options, "countdown": 0})
        except Retry as retry:
            told = retry
            told.when = after.total_seconds()
            raise
        except Reject as refused:
            # Celery's wrapping of whatever a publish raised; a worker would record it as a failure.
            reason = getattr(refused, "reason", None)
            if isinstance(reason, NotSent):
                raise reason from None
            raise
        told.when = after.total_seconds()
        return told

    @property
    def __trace__(self) -> Tracer | None:
        return self.__dict__.get("guarded_tracer_")

    @__trace__.setter
    def __trace__(self, tracer: Tracer | None) -> None:
        self.__dict__["guarded_tracer_"] = None if tracer is None else _guarded(self, tracer)


def _after(task: Any, countdown: float | None, eta: datetime | None) -> timedelta:
    if countdown is not None:
        return timedelta(seconds=max(0.0, float(countdown)))
    if eta is not None:
        aware = eta if eta.tzinfo is not None else eta.replace(tzinfo=UTC)
        return max(timedelta(0), aware - datetime.now(UTC))
    return timedelta(seconds=float(task.default_retry_delay))


def _guarded(task: _Guarded, tracer: Tracer) -> Tracer:
    deliveries = task.deliveries_

    def trace(job: str, args: Any, kwargs: Any, request: Any = None) -> Any:
        return deliveries.trace(task, tracer, job, args, kwargs, request=request)

    return trace

"""The guard: stands between a delivery and its body, on every task of the application.

Every task is adopted when it is registered, whatever its class (own base classes and shared tasks too): its class is
swapped for a subclass of itself whose tracer asks the guard first. So a job that may not start never reaches
`task_prerun`, and its result never says STARTED.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

import structlog
from billiard.einfo import ExceptionInfo
from celery import Celery, Task, states
from celery.app.registry import TaskRegistry
from celery.app.task import Context
from celery.app.trace import TraceInfo, trace_ok_t
from celery.exceptions import Reject, TaskRevokedError

from slackwater.adapters.celery.counting import NotStarted, count_requests_of
from slackwater.adapters.celery.publishing import NotSent, job_uuid, mark_of, runs_here
from slackwater.adapters.celery.successors import Successors, send_all
from slackwater.core.guard import Expire, Start, Stop, may_start, may_start_parent
from slackwater.core.job import JobState, Mark
from slackwater.core.occurrence import OccurrenceState
from slackwater.errors import StoreUnavailable
from slackwater.ports import Clock, Ending, Store

log = structlog.get_logger("slackwater.guard")
Tracer = Callable[[str, Any, Any, Any], Any]


class StoreOf(Protocol):
    """Gives the store, opened when it is first needed (in the process that needs it)."""

    def __call__(self) -> Store: ...  # noqa: D102


@dataclass(kw_only=True)
class Guard:
    """Decides whether a delivery may start, and ends those that may not."""

    app: Celery
    clock: Clock
    store: StoreOf
    successors: Successors

    def ask(self, job: str, request: Any) -> Start | Expire | Stop:
        """Decide for one delivery. A job without a mark, or not a schedule's own, costs no store round trip."""
        context = Context(request)
        mark = mark_of(context)
        verdict = may_start(mark, now=self.clock.calendar())
        if isinstance(verdict, Start) and mark is not None and job_uuid(job) == mark.occurrence is not None:
            # A retry comes under the same id too, and only from the body that ran: it is no copy.
            again = _redelivered(context) or bool(context.retries)
            return self._ask_as_parent(mark.occurrence, redelivered=again)
        return verdict

    def _ask_as_parent(self, occurrence: UUID, *, redelivered: bool) -> Start | Stop:
        try:
            known = self.store().occurrences.get(occurrence)
            verdict = may_start_parent(None if known is None else known.state, redelivered=redelivered)
            if isinstance(verdict, Start):
                self.store().occurrences.advance(occurrence, to=OccurrenceState.RUNNING, at=self.clock.run())
        except StoreUnavailable as error:
            # At least once: what cannot be asked runs.
            log.warning("occurrence not asked, its parent job starts", job=str(occurrence), error=str(error))
            return Start()
        return verdict

    def expire(self, *, job: str, task: str, mark: Mark, verdict: Expire, request: Any) -> bool:
        """End a job as expired: for whoever waits on its result, and in the store.

        The result says REVOKED with the reason, as Celery's own expiry does; a chord or chain that it belongs to
        learns of it. The ending is recorded first, so that a crash in between leaves a job that comes again.

        Returns:
            False for a late copy of a job that runs or has ended: nothing is changed then.
        """
        context = Context(request)
        if self._is_copy(job, context):
            log.info("late copy left out", job=job, task=task)
            return False
        ending = Ending(
            job=job, state=JobState.EXPIRED, reason=verdict.reason, task=task, lane=mark.lane, at=self.clock.run()
        )
        try:
            self.store().endings.record([ending])
        except StoreUnavailable as error:
            log.warning("expired, kept in its result alone", job=job, error=str(error))
        why = TaskRevokedError(f"expired: {verdict.reason}")
        self.app.backend.mark_as_failure(job, why, request=context, state=states.REVOKED)
        log.info("expired", job=job, task=task, reason=verdict.reason.value, late_by_s=round(verdict.late_by_s, 1))
        return True

    def _is_copy(self, job: str, context: Context) -> bool:
        # A second message under the same id is legal (a fan-out's parent ran twice), and what it finds done stays done.
        status = self.app.backend.get_task_meta(job, cache=False)["status"]
        if status == states.STARTED:
            return not _redelivered(context) and not runs_here(job)
        return status in states.READY_STATES


def _redelivered(context: Any) -> bool:
    return bool((context.delivery_info or {}).get("redelivered"))


class GuardedRegistry(TaskRegistry):
    """Celery's task registry, which adopts each task that is put into it."""

    def __init__(self, tasks: TaskRegistry, guard: Guard) -> None:
        super().__init__()
        self._guard = guard
        for name, task in tasks.items():
            self[name] = task

    def __setitem__(self, name: str, task: Any) -> None:
        adopt(task, self._guard)
        super().__setitem__(name, task)


def adopt(task: Any, guard: Guard) -> None:
    """Swap a task's class for a guarded subclass of it; a task adopted before is left as it is."""
    cls: type[Any] = task.__class__
    if issubclass(cls, _Guarded):
        return
    guarded = type(cls.__name__, (_Guarded, cls), {"__module__": cls.__module__, "__doc__": cls.__doc__})
    task.__class__ = guarded
    task.guard_ = guard
    task.Request = count_requests_of(task.Request)


class _Guarded(Task):  # type: ignore[type-arg]  # generic in the stubs alone
    """Wraps the tracer that Celery builds for a task."""

    abstract = True
    guard_: Guard

    def retry(self, *args: Any, **options: Any) -> Any:
        """Retry as Celery does; one that comes after `start_by` ends this body, and the job stays expired."""
        try:
            return super().retry(*args, **options)
        except Reject as refused:
            # Celery's wrapping of whatever a publish raised; a worker would record it as a failure.
            reason = getattr(refused, "reason", None)
            if isinstance(reason, NotSent):
                raise reason from None
            raise

    @property
    def __trace__(self) -> Tracer | None:
        return self.__dict__.get("guarded_tracer_")

    @__trace__.setter
    def __trace__(self, tracer: Tracer | None) -> None:
        self.__dict__["guarded_tracer_"] = None if tracer is None else _guarded(self, tracer)


def _guarded(task: _Guarded, tracer: Tracer) -> Tracer:
    guard, name = task.guard_, str(task.name)

    def trace(job: str, args: Any, kwargs: Any, request: Any = None) -> Any:
        verdict = guard.ask(job, request)
        if isinstance(verdict, Start):
            with guard.successors.held() as held:
                ended = tracer(job, args, kwargs, request)
            unsent = send_all(held)
            if unsent is None:
                return ended
            log.warning("successor not sent", job=job, task=name, error=str(unsent.error), again=unsent.again)
            return _ended_by(Reject(unsent.error, requeue=unsent.again), states.REJECTED)
        if isinstance(verdict, Expire):
            mark = mark_of(Context(request))
            if mark is None or guard.expire(job=job, task=name, mark=mark, verdict=verdict, request=request):
                return _ignored(NotStarted(JobState.EXPIRED, verdict.reason))
            return _ignored(NotStarted(JobState.DUPLICATE, verdict.reason))
        log.info("not started", job=job, task=name, reason=verdict.reason)
        return _ignored(NotStarted(JobState.DUPLICATE, verdict.reason))

    return trace


def _ignored(why: NotStarted) -> Any:
    return _ended_by(why, states.IGNORED)


def _ended_by(why: NotStarted | Reject, state: str) -> Any:
    """Return what Celery's tracer returns for a body that raised `Ignore` or `Reject`."""
    try:
        raise why
    except (NotStarted, Reject):
        return trace_ok_t(ExceptionInfo(internal=True), TraceInfo(state, why), 0.0, None)

"""How jobs end without their body: what is told to whoever waits for the result, and to chords, chains and groups.

Each act tells the store first, so that a crash in between leaves a delivery that comes again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog
from celery import Celery, states
from celery.app.task import Context
from celery.exceptions import TaskRevokedError

from slackwater.adapters.brokers.results import say_unless_ended, state_of
from slackwater.adapters.celery.publishing import mark_of, runs_here
from slackwater.core.admission import Bury, Resolve
from slackwater.core.delivery import Delivery
from slackwater.core.guard import Expire
from slackwater.core.job import JobState, Mark
from slackwater.engine.job_run import JobRuns
from slackwater.errors import PoisonedJob, StoreUnavailable
from slackwater.ports import Clock, Ending, Finish

log = structlog.get_logger("slackwater.ends")


@dataclass(frozen=True, kw_only=True)
class Ends:
    """Ends jobs in the store and in the result backend.

    Attributes:
        app: Whose jobs.
        clock: The two clocks.
        runs: Tells the store.
        key_of: Returns the key of a job, by its task's name, its request and its mark; None for none.
    """

    app: Celery
    clock: Clock
    runs: JobRuns
    key_of: Callable[[str, Context, Mark | None], str | None]

    def expire(self, *, job: str, task: str, mark: Mark, verdict: Expire, request: Any) -> bool:
        """End a job as expired. Its result says REVOKED with the reason, as Celery's own expiry does.

        Returns:
            False for a late copy of a job that runs or has ended: nothing is changed then.
        """
        context = Context(request)
        if self._is_copy(job, context):
            log.info("late copy left out", job=job, task=task)
            return False
        try:
            self._record(job, task, mark.lane, JobState.EXPIRED, verdict.reason.value)
            self._free_key(job, task, JobState.EXPIRED, mark=mark, context=context)
        except StoreUnavailable as error:
            log.warning("expired, kept in its result alone", job=job, error=str(error))
        self.revoke(job, f"expired: {verdict.reason}", request=context)
        log.info("expired", job=job, task=task, reason=verdict.reason.value, late_by_s=round(verdict.late_by_s, 1))
        return True

    def resolve(self, delivery: Delivery, to: Resolve, *, request: Any) -> None:
        """End a job as a duplicate of another that is under way; its result says REVOKED, with the other's id."""
        self.told_as_duplicate(delivery, to)
        self.revoke(delivery.job, f"duplicate: of {to.to} ({to.reason})", request=Context(request))

    def told_as_duplicate(self, delivery: Delivery, to: Resolve) -> None:
        """Record a job as a duplicate of another."""
        reason = f"{to.to}: {to.reason}"
        self._record(delivery.job, delivery.task, _lane(delivery), JobState.DUPLICATE, reason)
        log.info("duplicate", job=delivery.job, task=delivery.task, of=to.to, reason=to.reason)

    def bury(self, delivery: Delivery, why: Bury, *, request: Any) -> None:
        """End a job as dead whose attempts are spent; its run and its key are its delivery's to end."""
        self.dead(delivery.job, delivery.task, lane=_lane(delivery), reason=why.reason, request=request)

    def dead(self, job: str, task: str, *, lane: str | None, reason: str, request: Any) -> None:
        """End a job as dead; its result says FAILURE, and a chord that it belongs to learns of it."""
        self._record(job, task, lane, JobState.DEAD, reason)
        error = PoisonedJob(f"dead: {task} {job} {reason}")
        self.app.backend.mark_as_failure(job, error, request=Context(request))
        log.error("dead", job=job, task=task, reason=reason)

    def free_key(self, job: str, task: str, *, request: Any) -> None:
        """End the run and the key of a job that is dead, and of which no delivery is left to do it."""
        context = Context(request)
        self._free_key(job, task, JobState.DEAD, mark=mark_of(context), context=context)

    def revoke(self, job: str, why: str, *, request: Any) -> None:
        """Say REVOKED with a reason; a chord or chain that the job belongs to learns of it."""
        self.app.backend.mark_as_failure(job, TaskRevokedError(why), request=request, state=states.REVOKED)

    def end_of(self, job: str) -> tuple[JobState, BaseException | None] | None:
        """Return how a job has ended by its result, and its error; None while it has not."""
        meta = self.app.backend.get_task_meta(job, cache=False)
        if meta["status"] not in states.READY_STATES:
            return None
        result = meta.get("result")
        return state_of(meta), result if isinstance(result, BaseException) else None

    def success_of(self, job: str) -> tuple[bool, Any]:
        """Tell whether a job's result says SUCCESS, and return what it returned; None where no result is kept."""
        meta = self.app.backend.get_task_meta(job, cache=False)
        done = meta["status"] == states.SUCCESS
        return done, meta.get("result") if done else None

    def mirror(self, job: str, result: Any) -> None:
        """Give a dead letter's job the result of its replay."""
        self.app.backend.mark_as_done(job, result)

    def say_held(self, job: str, *, request: Any) -> None:
        """Say HELD, but not over an end: another delivery of the job may have brought it to that by now."""
        say_unless_ended(self.app.backend, job, "HELD", request=Context(request))

    def _record(self, job: str, task: str, lane: str | None, state: JobState, reason: str) -> None:
        self.runs.end(Ending(job=job, state=state, reason=reason, task=task, lane=lane, at=self.clock.run()))

    def _free_key(self, job: str, task: str, state: JobState, *, mark: Mark | None, context: Context) -> None:
        """End a job's key with it: else the next job with that key would be taken for a repeat of one that waits."""
        if (key := self.key_of(task, context, mark)) is not None:
            tries, ended_at = int(context.retries or 0), self.clock.calendar()
            self.runs.finish(Finish(job=job, tries=tries, state=state, ended_at=ended_at, key=key))

    def _is_copy(self, job: str, context: Context) -> bool:
        # A second message under the same id is legal (a fan-out's parent ran twice), and what it finds done stays done.
        status = self.app.backend.get_task_meta(job, cache=False)["status"]
        if status == states.STARTED:
            redelivered = bool((context.delivery_info or {}).get("redelivered"))
            return not redelivered and not runs_here(job)
        return status in states.READY_STATES


def _lane(delivery: Delivery) -> str | None:
    return delivery.mark.lane if delivery.mark is not None else None

"""What becomes of a delivery: its body runs, or it ends, waits or is buried without it.

A plain first delivery costs no round trip to the store.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from billiard.einfo import ExceptionInfo
from celery import states
from celery.app.trace import TraceInfo, trace_ok_t
from celery.exceptions import Reject
from celery.utils.serialization import get_pickleable_exception

from slackwater.adapters.celery.bodies import Body, running
from slackwater.adapters.celery.bundling import Bundler
from slackwater.adapters.celery.counting import NotStarted
from slackwater.adapters.celery.ends import Ends
from slackwater.adapters.celery.letters import Letters
from slackwater.adapters.celery.publishing import NotSent
from slackwater.adapters.celery.rules import arguments_of, delivery_of, rules_of
from slackwater.adapters.celery.successors import Successors, send_all
from slackwater.core.admission import Admit, Ask, Bury, Resolve, Wait
from slackwater.core.delivery import Delivery, DeliveryRules, ask_of
from slackwater.core.guard import Expire
from slackwater.core.job import JobState, Mark
from slackwater.core.lane import Lane
from slackwater.engine.job_run import JobRuns
from slackwater.engine.lateness import Lateness
from slackwater.errors import StaleFence, StoreUnavailable
from slackwater.ports import Clock, Finish

log = structlog.get_logger("slackwater.deliveries")
Tracer = Callable[[str, Any, Any, Any], Any]


@dataclass(kw_only=True)
class Deliveries:
    """Decides what becomes of each delivery in this process, and sees it through.

    Attributes:
        lanes: By name.
        clock: The two clocks.
        lateness: Decides what is late.
        runs: Asks and tells the store.
        ends: Ends jobs without their body.
        letters: Keeps dead letters and waiting jobs.
        successors: Holds back what bodies send under their own id.
        bundler: Notes the groups and chords that bodies publish.
        boot: Returns this worker process's id.
        lease_lives_for: Time-to-live of leases.
    """

    lanes: Mapping[str, Lane]
    clock: Clock
    lateness: Lateness
    runs: JobRuns
    ends: Ends
    letters: Letters
    successors: Successors
    bundler: Bundler
    boot: Callable[[], UUID]
    lease_lives_for: timedelta

    def trace(self, task: Any, tracer: Tracer, job: str, args: Any, kwargs: Any, *, request: Any) -> Any:
        """Take one delivery; returns what Celery's tracer returns."""
        delivery = delivery_of(job, task, request or {})
        rules = rules_of(task, self.lanes)
        call = _Call(
            task=task, tracer=tracer, delivery=delivery, rules=rules, args=args, kwargs=kwargs, request=request
        )
        try:
            return self._take(call)
        except StoreUnavailable as error:
            # What must be asked, or told, and cannot be: the delivery goes back and comes again.
            log.warning("store is away, delivery goes back", job=job, task=delivery.task, error=str(error))
            return ended_by(Reject(error, requeue=True), states.REJECTED)

    def _take(self, call: _Call) -> Any:
        ask = self._ask_of(call)
        if (late := self._late(call, ask)) is not None:
            return late
        if call.delivery.redelivered and (ended := self.ends.end_of(call.delivery.job)) is not None:
            return self._ended_before(call, ask, *ended)
        begun = None if ask is None else self.runs.begin(ask)
        if begun is None or ask is None:
            return self._run(call, None, Body(policy=call.rules.retry))
        return self._follow(call, ask, begun.admission, fence=begun.fence)

    def _ask_of(self, call: _Call) -> Ask | None:
        try:
            return ask_of(
                call.delivery,
                call.rules,
                call.arguments() if call.rules.parameters else {},
                boot=self.boot(),
                calendar=self.clock.calendar(),
                lease_lives_for=self.lease_lives_for,
            )
        except (TypeError, ValueError) as error:
            # Arguments that the task does not take: its body says so best.
            log.warning("no name for key or lease", job=call.delivery.job, task=call.delivery.task, error=str(error))
            return None

    def _late(self, call: _Call, ask: Ask | None) -> Any:
        delivery, mark = call.delivery, call.delivery.mark
        if mark is None or mark.start_by is None:
            return None
        tried = ask is not None and ask.key is not None and delivery.tries > 0
        verdict = self.lateness.verdict(mark, may_have_had_effect=tried)
        if not isinstance(verdict, Expire) or self._began_before(delivery, ask):
            return None
        return ignored(self._expire(call, mark, verdict), verdict.reason)

    def _expire(self, call: _Call, mark: Mark, verdict: Expire) -> JobState:
        """End a late job; return what its delivery has come to: a late copy changes nothing."""
        delivery = call.delivery
        told = self.ends.expire(job=delivery.job, task=delivery.task, mark=mark, verdict=verdict, request=call.request)
        return JobState.EXPIRED if told else JobState.DUPLICATE

    def _in_time(self, call: _Call, *, may_have_had_effect: bool) -> None:
        """Make sure once more that a job may start: a store, or a result backend, may have let it wait for its answer.

        Raises:
            NotStarted: It came to be late meanwhile, and has ended as expired.
        """
        mark = call.delivery.mark
        verdict = self.lateness.verdict(mark, may_have_had_effect=may_have_had_effect)
        if mark is not None and isinstance(verdict, Expire):
            raise NotStarted(self._expire(call, mark, verdict), verdict.reason)

    def _began_before(self, delivery: Delivery, ask: Ask | None) -> bool:
        """Tell whether a late job with a key had begun all the same, by the store.

        The broker's flag says only that it was delivered; and one that waited in the store has lost it.
        """
        return ask is not None and ask.key is not None and self.runs.has_begun(delivery.job)

    def _ended_before(self, call: _Call, ask: Ask | None, state: JobState, error: BaseException | None) -> Any:
        """Tell the store what an earlier delivery could not: it died after it had told the result backend."""
        if state is JobState.FAILED and error is not None and self.letters.keeps(call.delivery.task):
            self.letters.failed(call.delivery, error, body=Body(), request=call.request)
        if ask is not None:
            self._finish(ask, None, state, digest=None)
        return ignored(JobState.DUPLICATE, "its result says that it has ended")

    def _follow(self, call: _Call, ask: Ask, admission: Any, *, fence: int | None) -> Any:
        match admission:
            case Admit(attempt=attempt):
                return self._start(call, ask, attempt, fence=fence)
            case Resolve() if admission.to == call.delivery.job:
                if admission.state is JobState.DONE:
                    self._finish(replace(ask, key=None, lease=None), None, JobState.DONE, digest=None)
                return ignored(JobState.DUPLICATE, admission.reason)
            case Resolve(state=JobState.DONE):
                return self._mirror(call, ask, admission)
            case Resolve():
                self.ends.resolve(call.delivery, admission, request=call.request)
                self._finish(ask, None, JobState.DUPLICATE, digest=None)
                return ignored(JobState.DUPLICATE, admission.reason)
            case Wait():
                repeats = _repeats(call.delivery, ask) or self._began_before(call.delivery, ask)
                self.letters.hold(call.delivery, admission, may_have_had_effect=repeats, request=call.request)
                return ignored(JobState.HELD, admission.reason)
            case Bury():
                self.letters.bury(call.delivery, admission, request=call.request)
                self.ends.bury(call.delivery, admission, request=call.request)
                self._finish(ask, None, JobState.DEAD, digest=None)
                return ignored(JobState.DEAD, admission.reason)
        raise AssertionError(f"no admission: {admission!r}")

    def _start(self, call: _Call, ask: Ask, attempt: int, *, fence: int | None) -> Any:
        try:
            self._in_time(call, may_have_had_effect=_repeats(call.delivery, ask, attempt=attempt))
        except NotStarted as late:
            self._finish(ask, fence, JobState(late.state), digest=None)
            return ignored(JobState(late.state), late.reason)
        self._note_parent(call.delivery)
        lease = None if ask.lease is None else ask.lease.name
        key = None if ask.key is None else ask.key.name
        body = Body(policy=call.rules.retry, key=key, lease=lease, fence=fence, attempt=attempt)
        return self._run(call, ask, body)

    def _mirror(self, call: _Call, ask: Ask, to: Resolve) -> Any:
        """End as the other run did: with its result, and whatever is linked to this job goes on."""
        self.ends.told_as_duplicate(call.delivery, to)
        _, result = self.ends.success_of(to.to)
        ended = self._trace(call, Body(result=result))
        self._finish(ask, None, JobState.DUPLICATE, digest=None)
        return ended

    def _note_parent(self, delivery: Delivery) -> None:
        if delivery.is_parent and delivery.mark is not None and delivery.mark.occurrence is not None:
            self.runs.parent_starts(delivery.mark.occurrence, at=self.clock.run())

    def _run(self, call: _Call, ask: Ask | None, body: Body) -> Any:
        repeats = _repeats(call.delivery, ask, attempt=body.attempt)
        body.begins = lambda: self._in_time(call, may_have_had_effect=repeats)
        ended = self._trace(call, body)
        state, error = outcome(ended)
        if state is JobState.FAILED and error is not None and self.letters.keeps(call.delivery.task):
            self.letters.failed(call.delivery, error, body=body, request=call.request)
        if ask is not None:
            self._tell(ask, ended, state, fence=body.fence)
        mark = call.delivery.mark
        if state is JobState.DONE and mark is not None and mark.replay_of is not None:
            self.ends.mirror(mark.replay_of, ended[0])
        return ended

    def _tell(self, ask: Ask, ended: Any, state: JobState, *, fence: int | None) -> None:
        try:
            digest = digest_of(ended) if state is JobState.DONE else None
            self._finish(ask, fence, state, digest=digest, handed_back=was_fenced_out(ended))
        except StoreUnavailable as error:
            if ended[1] is None or ended[1].state != states.RETRY:
                raise
            # Its next try is on its way, and a delivery that went back would be a second body. Its lease lapses.
            log.warning("its end is not told", job=ask.job, task=ask.task, error=str(error))

    def _trace(self, call: _Call, body: Body) -> Any:
        job, task = call.delivery.job, call.delivery.task
        with self.successors.held() as held, running(body):
            ended = call.tracer(job, call.args, call.kwargs, call.request)
        unsent = send_all(held)
        self.bundler.forget()
        if unsent is None:
            return ended
        log.warning("successor not sent", job=job, task=task, error=str(unsent.error), again=unsent.again)
        # A pool's process sends it to its worker.
        error = get_pickleable_exception(unsent.error)
        return ended_by(Reject(error, requeue=unsent.again), states.REJECTED)

    def _finish(
        self, ask: Ask, fence: int | None, state: JobState, *, digest: str | None, handed_back: bool = False
    ) -> None:
        self.runs.finish(
            Finish(
                job=ask.job,
                tries=ask.tries,
                state=state,
                ended_at=self.clock.calendar(),
                key=None if ask.key is None else ask.key.name,
                lease=None if ask.lease is None else ask.lease.name,
                fence=fence,
                digest=digest,
                handed_back=handed_back,
            )
        )


@dataclass(frozen=True, kw_only=True)
class _Call:
    """One delivery as Celery's tracer gets it."""

    task: Any
    tracer: Tracer
    delivery: Delivery
    rules: DeliveryRules
    args: Any
    kwargs: Any
    request: Any

    def arguments(self) -> Mapping[str, Any]:
        return arguments_of(self.task, self.args, self.kwargs)


def _repeats(delivery: Delivery, ask: Ask | None, *, attempt: int = 1) -> bool:
    """Tell whether a job with a key was started before, as far as is known, so that it may have had its effect."""
    return ask is not None and ask.key is not None and (delivery.redelivered or delivery.tries > 0 or attempt > 1)


def outcome(ended: Any) -> tuple[JobState, BaseException | None]:
    """Return a job's state by what its tracer returned, and the error of one that failed."""
    info = ended[1]
    if info is None:
        return JobState.DONE, None
    if isinstance(info.retval, NotStarted):
        return JobState(info.retval.state), None  # it came to be late before its body had begun
    if isinstance(info.retval, NotSent):
        return JobState.EXPIRED, None  # its retry would have come too late: nothing of it is left
    if info.state == states.FAILURE:
        return JobState.FAILED, info.retval if isinstance(info.retval, BaseException) else None
    if isinstance(info.retval, Reject):
        rejected: Any = info.retval  # the stubs leave out what it carries
        if not rejected.requeue:
            # It does not come again: Celery's worker says FAILURE once it has this.
            return JobState.FAILED, rejected.reason if isinstance(rejected.reason, BaseException) else rejected
    return JobState.QUEUED, None


def was_fenced_out(ended: Any) -> bool:
    """Tell whether a body could not commit, since it had lost its lease: its delivery goes back, and is no poison."""
    if ended[1] is None or not isinstance(ended[1].retval, Reject):
        return False
    rejected: Any = ended[1].retval  # the stubs leave out what it carries
    return bool(rejected.requeue) and isinstance(rejected.reason, StaleFence)


def digest_of(ended: Any) -> str | None:
    """Return the SHA-256 of a result's JSON, in hex; None for a result that JSON does not know."""
    try:
        text = json.dumps(ended[0], sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError):
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def ignored(state: JobState, reason: str) -> Any:
    """Return what Celery's tracer returns for a body that raised `Ignore`; the worker then acknowledges."""
    return ended_by(NotStarted(state, reason), states.IGNORED)


def ended_by(why: NotStarted | Reject, state: str) -> Any:
    """Return what Celery's tracer returns for a body that raised `Ignore` or `Reject`."""
    try:
        raise why
    except (NotStarted, Reject):
        return trace_ok_t(ExceptionInfo(internal=True), TraceInfo(state, why), 0.0, None)

"""Jobs that are put away whole: waiting in the store, or dead."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import structlog
from celery import Celery

from slackwater.adapters.celery.bodies import Body
from slackwater.adapters.celery.ends import Ends
from slackwater.adapters.celery.publishing import Sending
from slackwater.adapters.celery.verbatim import message_of, request_of
from slackwater.core.admission import Bury, Wait
from slackwater.core.dead_letter import DeadLetter
from slackwater.core.delivery import Delivery
from slackwater.core.guard import Expire
from slackwater.core.job import HEADER, JobState, Mark
from slackwater.core.message import Held, Message
from slackwater.engine.job_run import JobRuns
from slackwater.engine.lateness import Lateness
from slackwater.errors import StoreUnavailable
from slackwater.ports import Clock

log = structlog.get_logger("slackwater.letters")
POISON = "poison"
LONGEST_TRACEBACK = 20_000


@dataclass(frozen=True, kw_only=True)
class Letters:
    """Puts jobs away; the store has them before their delivery is acknowledged.

    Attributes:
        app: Whose jobs.
        lane_of: Lane of a task, by its name.
        clock: The two clocks.
        lateness: Decides what is late.
        runs: Tells the store.
        ends: Tells the result backend.
        later: How long a job waits that waits for nothing in particular.
    """

    app: Celery
    lane_of: Callable[[str], str | None]
    clock: Clock
    lateness: Lateness
    runs: JobRuns
    ends: Ends
    later: timedelta

    def keeps(self, task: str) -> bool:
        """Tell whether dead letters of a task are kept: of those that have a lane."""
        return self.lane_of(task) is not None

    def hold(self, delivery: Delivery, wait: Wait, *, may_have_had_effect: bool, request: Any) -> None:
        """Keep a delivery in the store until its time comes or a lease is free.

        One that may have had its effect does not become late there.

        Raises:
            StoreUnavailable: It could not be kept.
        """
        now = self.clock.run()
        held = Held(
            message=self._marked(waiting(request), delivery.mark),
            lane=self.lane_of(delivery.task) or "",
            tries=delivery.tries,
            not_before=now if wait.on is not None else now + self.later,
            waits_for=wait.on,
            start_by=None if delivery.mark is None or may_have_had_effect else delivery.mark.start_by,
            reason=wait.reason,
            held_at=now,
        )
        self.runs.hold(held)
        if not wait.own:
            # Else its body may run, and a late copy would take it for one that does not.
            self.ends.say_held(delivery.job, request=request)
        log.info("held", job=delivery.job, task=delivery.task, reason=wait.reason)

    def keep(self, sending: Sending, after: timedelta) -> None:
        """Keep what a body sent under its own id, until so much later.

        Raises:
            StoreUnavailable: It could not be kept.
        """
        now, mark = self.clock.run(), sending.mark
        message = sending.as_message()
        held = Held(
            message=self._marked(message, mark),
            lane=mark.lane or "",
            tries=int(message.headers["retries"]),
            not_before=now + after,
            start_by=None if sending.repeats else mark.start_by,
            reason="retry",
            held_at=now,
        )
        self.runs.hold(held)

    def expire(self, held: Held) -> None:
        """End a held job whose `start_by` has passed."""
        mark = Mark.from_header(held.message.headers.get(HEADER))
        verdict = self.lateness.verdict(mark)
        if mark is None or not isinstance(verdict, Expire):
            return
        request = request_of(held.message, accept=self.app.conf.accept_content)
        self.ends.expire(job=held.job, task=held.message.task, mark=mark, verdict=verdict, request=request)

    def bury(self, delivery: Delivery, why: Bury, *, request: Any) -> None:
        """Keep a dead letter of a job whose attempts are spent.

        Raises:
            StoreUnavailable: It could not be kept.
        """
        letter = self._letter(
            delivery, JobState.DEAD, cause=POISON, reason=why.reason, attempts=why.attempts, request=request
        )
        self.runs.bury(letter)

    def failed(self, delivery: Delivery, error: BaseException, *, body: Body, request: Any) -> None:
        """Keep a dead letter of a job that has failed; its end is told already, so a store that is away loses it."""
        letter = self._letter(
            delivery,
            JobState.FAILED,
            cause=type(error).__name__,
            reason=_one_line(error),
            attempts=body.attempt,
            request=request,
            trace=_traceback(error),
        )
        try:
            self.runs.bury(letter)
        except StoreUnavailable:
            log.exception("failed, and no dead letter kept", job=delivery.job, task=delivery.task)

    def _letter(  # noqa: PLR0913  # the parts of one letter
        self,
        delivery: Delivery,
        state: JobState,
        *,
        cause: str,
        reason: str,
        attempts: int,
        request: Any,
        trace: str = "",
    ) -> DeadLetter:
        mark = delivery.mark
        return DeadLetter(
            message=message_of(request),
            job=delivery.job,
            task=delivery.task,
            lane=self.lane_of(delivery.task),
            tenant=None if mark is None else mark.tenant,
            state=state,
            cause=cause,
            reason=reason,
            traceback=trace,
            attempts=attempts,
            tries=delivery.tries + 1,
            published_at=None if mark is None else mark.published_at,
            buried_at=self.clock.run(),
            replay_of=None if mark is None else mark.replay_of,
        )

    def _marked(self, message: Message, mark: Mark | None) -> Message:
        """Return the message as it is released: a copy of it may come without the broker's flag."""
        return released(message, mark or Mark(published_at=self.clock.run(), lane=self.lane_of(message.task)))


def released(message: Message, mark: Mark) -> Message:
    """Return a message as it is released from the store: its mark says that a copy of it may come."""
    return replace(message, headers={**message.headers, HEADER: replace(mark, released=True).to_header()})


def waiting(request: Any) -> Message:
    """Return the message of a delivery that waits; its ETA is over."""
    message = message_of(request)
    return replace(message, headers={**message.headers, "eta": None})


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-LONGEST_TRACEBACK:]

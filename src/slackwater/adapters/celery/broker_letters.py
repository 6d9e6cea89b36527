"""What becomes of a message that RabbitMQ has taken out of a lane's queue: its job gets an end that everybody sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog
from celery import Celery

from slackwater.adapters.brokers.dead_letters import BrokerLetter
from slackwater.adapters.celery.ends import Ends
from slackwater.adapters.celery.verbatim import request_of
from slackwater.core.dead_letter import DeadLetter
from slackwater.core.guard import Expire
from slackwater.core.job import HEADER, ExpiryReason, JobState, Mark
from slackwater.ports import Clock

log = structlog.get_logger("slackwater.dead_letters")
_EXPIRED = "expired"
_SENTENCES = {
    "delivery_limit": "it was delivered more often than its queue allows",
    "rejected": "a worker rejected it",
    "maxlen": "its queue was full",
}


@dataclass(frozen=True, kw_only=True)
class BrokerLetters:
    """Ends jobs by the broker's reason: expired ones as expired, all others as dead, with a dead letter.

    Attributes:
        app: Whose jobs.
        ends: Tells everybody.
        bury: Keeps a dead letter; must be safe to repeat for a job.
        lane_of: Lane by queue; None for a queue that is no lane.
        clock: Run clock.
    """

    app: Celery
    ends: Ends
    bury: Callable[[DeadLetter], None]
    lane_of: Callable[[str], str | None]
    clock: Clock

    def end(self, letter: BrokerLetter) -> None:
        """End one job; safe to repeat. A job that has ended already keeps its end."""
        request = request_of(letter.message, accept=self.app.conf.accept_content)
        mark = Mark.from_header(letter.message.headers.get(HEADER))
        if letter.reason == _EXPIRED:
            self._expire(letter, mark, request)
        else:
            self._bury(letter, mark, request)

    def _expire(self, letter: BrokerLetter, mark: Mark | None, request: Any) -> None:
        message = letter.message
        known = mark or Mark(published_at=self.clock.run(), lane=self.lane_of(message.queue))
        verdict = Expire(reason=ExpiryReason.BROKER, late_by_s=0.0)
        self.ends.expire(job=message.job, task=message.task, mark=known, verdict=verdict, request=request)

    def _bury(self, letter: BrokerLetter, mark: Mark | None, request: Any) -> None:
        message, why = letter.message, _SENTENCES.get(letter.reason, f"the broker took it out ({letter.reason})")
        if self.ends.end_of(message.job) is not None:
            log.info("dead letter of a job that has ended left out", job=message.job, reason=letter.reason)
            return
        # Kept before it is told: a crash in between brings the letter again, and the first one stays.
        self.bury(
            DeadLetter(
                job=message.job,
                task=message.task,
                lane=self.lane_of(message.queue),
                state=JobState.DEAD,
                cause=letter.reason,
                reason=why,
                attempts=0,
                tries=int(message.headers.get("retries") or 0) + 1,
                buried_at=self.clock.run(),
                message=message,
                published_at=None if mark is None else mark.published_at,
            )
        )
        lane = self.lane_of(message.queue)
        self.ends.free_key(message.job, message.task, request=request)
        self.ends.dead(message.job, message.task, lane=lane, reason=why, request=request)
        log.warning("dead letter of the broker kept", job=message.job, task=message.task, reason=letter.reason)

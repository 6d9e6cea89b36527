"""What becomes of jobs that were lost while under way, in terms of their messages and results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from celery import Celery

from slackwater.adapters.celery.ends import Ends
from slackwater.adapters.celery.letters import released
from slackwater.adapters.celery.verbatim import request_of
from slackwater.core.dead_letter import DeadLetter
from slackwater.core.job import HEADER, JobState, Mark
from slackwater.core.message import Held
from slackwater.core.under_way import UnderWay
from slackwater.engine.job_run import JobRuns
from slackwater.ports import Clock, Finish

CAUSE = "lost"


@dataclass(frozen=True, kw_only=True)
class LostInTransit:
    """Acts on lost jobs (the sweeper's `LostJobs`).

    Attributes:
        app: Whose jobs.
        clock: The two clocks.
        runs: Tells the store.
        ends: Tells the result backend.
    """

    app: Celery
    clock: Clock
    runs: JobRuns
    ends: Ends

    def as_held(self, lost: UnderWay, reason: str) -> Held:
        """Return how a job waits that is to be started again: for its own lease, so beside no body that lives."""
        message, now = lost.message, self.clock.run()
        if message is None:
            raise LookupError(f"job {lost.job}: its message is not kept")
        mark = Mark.from_header(message.headers.get(HEADER)) or Mark(published_at=now, lane=lost.lane)
        return Held(
            message=released(message, mark),
            lane=lost.lane or "",
            tries=lost.start.tries,
            not_before=now,
            waits_for=lost.lease,
            # With a key it may have had its effect, and only another body can find out.
            start_by=None if lost.key is not None else mark.start_by,
            reason=reason,
            held_at=now,
        )

    def told_held(self, held: Held) -> None:
        """Say HELD on its result."""
        self.ends.say_held(held.job, request=request_of(held.message, accept=self.app.conf.accept_content))

    def give_up(self, lost: UnderWay, reason: str) -> None:
        """End it as dead. The dead letter is kept first: a crash in between is found again."""
        mark = None if lost.message is None else Mark.from_header(lost.message.headers.get(HEADER))
        self.runs.bury(
            DeadLetter(
                job=lost.job,
                task=lost.task,
                lane=lost.lane,
                state=JobState.DEAD,
                cause=CAUSE,
                reason=reason,
                attempts=lost.start.attempt,
                tries=lost.start.tries + 1,
                buried_at=self.clock.run(),
                message=lost.message,
                published_at=None if mark is None else mark.published_at,
                tenant=None if mark is None else mark.tenant,
            )
        )
        self.ends.dead(lost.job, lost.task, lane=lost.lane, reason=reason, request=self._request(lost))
        self.runs.finish(
            Finish(
                job=lost.job,
                tries=lost.start.tries,
                state=JobState.DEAD,
                ended_at=self.clock.calendar(),
                key=lost.key,
                lease=lost.lease,
            )
        )

    def _request(self, lost: UnderWay) -> Mapping[str, Any]:
        if lost.message is None:
            return {"id": lost.job, "task": lost.task}
        return request_of(lost.message, accept=self.app.conf.accept_content)

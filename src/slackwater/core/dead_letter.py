"""Dead letters: jobs taken out of circulation, whole, with their cause; and when a flood of them pauses a lane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from slackwater.core.job import JobState
from slackwater.core.message import Message


@dataclass(frozen=True, kw_only=True)
class DeadLetter:
    """A job that nobody will run again by itself.

    Attributes:
        message: All of it; None where only its metadata were kept, since the store was full of its kind.
        job: Its id.
        task: Its task's name.
        lane: Its lane; None for none.
        tenant: Whose work it was; None where nobody said.
        state: Dead (its attempts are spent) or failed (its tries are, or its error is not to be retried).
        cause: What it is grouped by: the error's kind, or `poison`, `delivery_limit`, `rejected`.
        reason: One sentence.
        traceback: Of the last error; empty where there is none.
        attempts: Started deliveries of its last try.
        tries: Tries that were begun.
        published_at: When it was first handed to the broker (run clock); None where it carries no mark.
        buried_at: When it came here (run clock).
        replayed_as: Id of the job that does its work now; None for none.
        replay_of: Id of the dead letter that this job was a replay of; None for none.
    """

    job: str
    task: str
    lane: str | None
    state: JobState
    cause: str
    reason: str
    attempts: int
    tries: int
    buried_at: datetime
    message: Message | None = None
    tenant: str | None = None
    traceback: str = ""
    published_at: datetime | None = None
    replayed_as: str | None = None
    replay_of: str | None = None


@dataclass(frozen=True, kw_only=True)
class Flood:
    """When dead letters of one cause pause a lane (circuit breaker).

    Attributes:
        count: So many of one lane and cause,
        within: in so long a time,
        share: and at least this share of all that ended in the lane.
    """

    count: int = 50
    within: timedelta = timedelta(minutes=1)
    share: float = 0.9


@dataclass(frozen=True, kw_only=True)
class Pause:
    """A lane that takes no work.

    Attributes:
        lane: Its name.
        cause: Of the flood.
        reason: One sentence.
        since: When it was paused (run clock).
        until: When one job may try again (run clock).
    """

    lane: str
    cause: str
    reason: str
    since: datetime
    until: datetime


@dataclass(frozen=True, kw_only=True)
class CauseCount:
    """Dead letters of one lane and cause in the span that the flood rule looks at.

    Attributes:
        lane: The lane.
        cause: The cause.
        count: Dead letters of it.
        ended_count: All jobs that ended in the lane in the same span, these included.
    """

    lane: str
    cause: str
    count: int
    ended_count: int


def floods(counts: Sequence[CauseCount], *, rule: Flood, now: datetime, pause_for: timedelta) -> tuple[Pause, ...]:
    """Decide which lanes to pause: nearly everything in them fails, and of one cause.

    Args:
        counts: By lane and cause, over the last `rule.within`.
        rule: From when on it is a flood.
        now: Run clock.
        pause_for: How long until the lane may try again.
    """
    return tuple(
        Pause(
            lane=one.lane,
            cause=one.cause,
            reason=f"{one.count} of {one.ended_count} jobs ended in {one.cause} within {rule.within}",
            since=now,
            until=now + pause_for,
        )
        for one in counts
        if one.count >= rule.count and one.count >= rule.share * one.ended_count
    )

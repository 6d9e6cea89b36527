"""The guard's decision: may this delivery start?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from slackwater.core.job import ExpiryReason, Mark
from slackwater.core.occurrence import OccurrenceState


@dataclass(frozen=True)
class Start:
    """The body may start."""


@dataclass(frozen=True, kw_only=True)
class Expire:
    """The job ends as expired.

    Attributes:
        reason: Why.
        late_by_s: How long after its `start_by` it came, in seconds of the calendar clock.
    """

    reason: ExpiryReason
    late_by_s: float


def may_start(mark: Mark | None, *, now: datetime) -> Start | Expire:
    """Decide whether a job may start: now, or not at all.

    The same decision before publishing and before the body. A job without a `start_by` always may. One that is
    delivered again after its `start_by` may not either: nothing here can tell whether its first body had an effect.

    Args:
        mark: What the message carries; None for a message that is not ours.
        now: Calendar clock.
    """
    if mark is None or mark.start_by is None or now <= mark.start_by:
        return Start()
    return Expire(reason=ExpiryReason.LATE, late_by_s=(now - mark.start_by).total_seconds())


@dataclass(frozen=True, kw_only=True)
class Stop:
    """This delivery ends without effect: another one does, or did, the work.

    Attributes:
        reason: Why.
    """

    reason: str


def may_start_parent(state: OccurrenceState | None, *, redelivered: bool) -> Start | Stop:
    """Decide whether an occurrence's parent job may start.

    A balancer that dies between publishing and recording it publishes again under the same id. The copy comes without
    the broker's redelivery flag, and must not start beside or after the first. A flagged one may: its holder has died.

    Args:
        state: What the occurrence has come to; None where the store has no such row.
        redelivered: The broker's flag.
    """
    if state is not None and state.final:
        return Stop(reason=f"its occurrence has ended as {state}")
    if state is OccurrenceState.RUNNING and not redelivered:
        return Stop(reason="its occurrence runs already")
    return Start()

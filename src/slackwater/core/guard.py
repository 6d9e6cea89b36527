"""The guard's decision: may this delivery start?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from slackwater.core.job import ExpiryReason, Mark


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


def may_start(mark: Mark | None, *, now: datetime, may_have_had_effect: bool = False) -> Start | Expire:
    """Decide whether a job may start: now, or not at all.

    The same decision before publishing and before the body. A job without a `start_by` always may.

    Args:
        mark: What the message carries; None for a message that is not ours.
        now: Calendar clock.
        may_have_had_effect: It has a key, and is delivered again: an earlier body may have had its effect, and only
            another one can find out. Such a job may start late; without a key a second body could do no more than
            repeat the effect.
    """
    if mark is None or mark.start_by is None or now <= mark.start_by or may_have_had_effect:
        return Start()
    return Expire(reason=ExpiryReason.LATE, late_by_s=(now - mark.start_by).total_seconds())

"""Sweeps: rounds of a sweeper (reaper, janitor), which finds what got stuck and recovers it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """One round of one sweeper.

    Attributes:
        sweeper: Its name.
        at: When (run clock).
        found_count: Things found stuck.
        recovered_count: Things recovered; the others are left for the next round.
        note: One sentence, empty where there is nothing to say.
        error: Why the round failed; empty where it did not.
    """

    sweeper: str
    at: datetime
    found_count: int = 0
    recovered_count: int = 0
    note: str = ""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Amnesty:
    """For how long nobody is called dead: until everybody has had the time to say that he lives.

    Attributes:
        until: Run clock.
        reason: Why.
    """

    until: datetime
    reason: str


def amnesty(*, back_since: datetime | None, lives_for: timedelta, now: datetime, what: str) -> Amnesty | None:
    """Decide whether an outage is too short ago to judge anyone's silence.

    Args:
        back_since: When the store or broker answered again (run clock); None where it was never away.
        lives_for: A sign of life's time-to-live.
        now: Run clock.
        what: What was away.
    """
    if back_since is None or now >= back_since + lives_for:
        return None
    return Amnesty(until=back_since + lives_for, reason=f"the {what} was away until {back_since:%H:%M:%S}")

"""Canaries: jobs that do nothing, sent through each lane, which show that it really consumes (synthetic probe)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, kw_only=True)
class Canary:
    """What is known of one lane's canaries; instants of the run clock.

    Attributes:
        lane: Its name.
        sent_at: When the oldest that is not answered was sent; the latest, where all are answered.
        answered_at: When a worker of the lane last ran one; None for never.
        worker: Who did.
    """

    lane: str
    sent_at: datetime
    answered_at: datetime | None = None
    worker: str | None = None

    @property
    def waits(self) -> bool:
        """Tell whether one is under way."""
        return self.answered_at is None or self.answered_at < self.sent_at

    def silent(self, now: datetime, *, within: timedelta) -> bool:
        """Tell whether the lane should have answered by now."""
        return self.waits and now - self.sent_at > within

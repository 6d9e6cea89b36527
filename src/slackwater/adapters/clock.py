"""The two clocks, from the machine's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from slackwater.core.tempo import Tempo


@dataclass(frozen=True, kw_only=True)
class SystemClock:
    """The run clock is the machine's wall clock; the calendar follows it at a tempo.

    All processes of one night share the tempo, so they agree without talking.
    """

    tempo: Tempo

    def run(self) -> datetime:
        """Return real time, UTC."""
        return datetime.now(UTC)

    def calendar(self) -> datetime:
        """Return scaled time, UTC."""
        return self.tempo.calendar_at(self.run())

    def run_at(self, calendar: datetime) -> datetime:
        """Return the real instant of a scaled one."""
        return self.tempo.run_at(calendar)

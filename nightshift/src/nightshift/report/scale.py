"""The picture's scales: instants to x, amounts to heights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from slackwater import Tempo

_HOUR_S = 3600


@dataclass(frozen=True, kw_only=True)
class TimeScale:
    """Linear, from the night's calendar to px.

    Attributes:
        starts_at: Instant (calendar clock) at `left`.
        ends_at: Instant (calendar clock) at `right`.
        tempo: For instants of the run clock.
        zone: For the hours of the grid.
        left: px.
        right: px.
    """

    starts_at: datetime
    ends_at: datetime
    tempo: Tempo
    zone: ZoneInfo
    left: float
    right: float

    def x(self, calendar: datetime) -> float:
        """Return the px of an instant of the calendar, kept inside the picture."""
        share = (calendar - self.starts_at) / (self.ends_at - self.starts_at)
        return self.left + (self.right - self.left) * min(1.0, max(0.0, share))

    def x_of_run(self, run: datetime) -> float:
        """Return the px of an instant of the run clock."""
        return self.x(self.tempo.calendar_at(run))

    def shows(self, calendar: datetime) -> bool:
        """Tell whether an instant of the calendar is inside the picture."""
        return self.starts_at <= calendar <= self.ends_at

    def hours(self) -> Iterator[datetime]:
        """Yield the full hours, in the zone; the hour that a clock change repeats comes twice."""
        first = math.ceil(self.starts_at.timestamp() / _HOUR_S)
        last = math.floor(self.ends_at.timestamp() / _HOUR_S)
        for number in range(first, last + 1):
            yield datetime.fromtimestamp(number * _HOUR_S, tz=self.zone)


@dataclass(frozen=True, kw_only=True)
class Height:
    """Linear, from an amount to px; `full` is the amount that takes the whole height."""

    full: float
    px: float

    def of(self, amount: float) -> float:
        """Return the height of an amount, at most the whole."""
        return self.px * min(1.0, amount / self.full) if self.full else 0.0

"""Tempo: how calendar time runs against run time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self


@dataclass(frozen=True, kw_only=True)
class Tempo:
    """A straight line from the run clock (real time) to the calendar clock (scaled).

    The schedule, windows and `start_by` live on the calendar; bodies, leases, presence and permits on the run clock.
    In production both are the same (`Tempo.real()`); a compressed night runs the calendar faster.

    Attributes:
        run_origin: An instant of the run clock.
        calendar_origin: The calendar's instant at that moment.
        rate: Calendar seconds per run second, above zero.
    """

    run_origin: datetime
    calendar_origin: datetime
    rate: float

    def __post_init__(self) -> None:
        if not 0 < self.rate < math.inf:
            raise ValueError(f"a tempo's rate must be above zero and finite, not {self.rate}")
        for name in ("run_origin", "calendar_origin"):
            if getattr(self, name).tzinfo is None:
                raise ValueError(f"a tempo's {name} needs a time zone")

    @classmethod
    def real(cls) -> Self:
        """Return the tempo at which both clocks are one."""
        epoch = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
        return cls(run_origin=epoch, calendar_origin=epoch, rate=1.0)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str()` wrote: `RUN_ORIGIN/CALENDAR_ORIGIN/RATE`.

        Raises:
            ValueError: The text is not that.
        """
        try:
            run_origin, calendar_origin, rate = text.split("/")
            return cls(
                run_origin=datetime.fromisoformat(run_origin),
                calendar_origin=datetime.fromisoformat(calendar_origin),
                rate=float(rate),
            )
        except ValueError as error:
            raise ValueError(f"a tempo reads RUN_ORIGIN/CALENDAR_ORIGIN/RATE, not {text!r} ({error})") from None

    def __str__(self) -> str:
        return f"{self.run_origin.isoformat()}/{self.calendar_origin.isoformat()}/{self.rate!r}"

    def calendar_at(self, run: datetime) -> datetime:
        """Return the calendar's instant at an instant of the run clock."""
        return self.calendar_origin + (run - self.run_origin) * self.rate

    def run_at(self, calendar: datetime) -> datetime:
        """Return the run clock's instant at an instant of the calendar."""
        return self.run_origin + (calendar - self.calendar_origin) / self.rate

    def run_span(self, calendar: timedelta) -> timedelta:
        """Return how long a span of the calendar takes on the run clock."""
        return calendar / self.rate

"""Time: the two clocks."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The two clocks."""

    def run(self) -> datetime:
        """Return the run clock: real time, UTC."""
        ...

    def calendar(self) -> datetime:
        """Return the calendar clock: scaled time, UTC."""
        ...

    def run_at(self, calendar: datetime) -> datetime:
        """Return the run clock's instant at an instant of the calendar."""
        ...

"""The clock of a store in memory, and its amnesty; `adapters/postgres/pulse.py` tells what that is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """Return the system's clock, in UTC."""
    return datetime.now(UTC)


class Pulse:
    """When anybody gave a sign of life last, and since when somebody always has."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at = self._up_since = clock()
        self._lives_for = timedelta(seconds=30)

    def now(self) -> datetime:
        """Return the store's own clock, in UTC."""
        return self._clock().astimezone(UTC)

    def beat(self, lives_for: timedelta | None = None) -> None:
        """Note a sign of life; without a time-to-live only the end of an outage is noted, as an admission does."""
        span = self._lives_for if lives_for is None else lives_for
        now = self.now()
        if out := self._at < now - span / 2:
            self._up_since = now
        if out or lives_for is not None:
            self._at, self._lives_for = now, span

    def up_since(self) -> datetime:
        """Return since when somebody could always renew: now, where nobody has given a sign of life for long."""
        now = self.now()
        return now if self._at < now - self._lives_for / 2 else self._up_since

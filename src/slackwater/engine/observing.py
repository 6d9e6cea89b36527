"""Observing: for how long this process itself has seen that things stand as they do."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from slackwater.core.sweep import Amnesty, amnesty

Thing = TypeVar("Thing", bound=Hashable)


@dataclass(kw_only=True)
class Looks:
    """This process's own looks: whether there was a gap between them, and the amnesty after it.

    A gap is a time in which it could not look: the store or the broker was away, or this process was stopped.

    Attributes:
        lives_for: A gap that is longer than this was an outage; the length of the amnesty.
    """

    lives_for: timedelta
    _looked_at: datetime | None = field(default=None, init=False)
    _back_since: datetime | None = field(default=None, init=False)

    def look(self, *, now: datetime) -> datetime | None:
        """Note a look; return when the one before was, None after a gap (or for the first): what was seen is void."""
        before, self._looked_at = self._looked_at, now
        if before is None or now - before > self.lives_for:
            self._back_since = now
            return None
        return before

    def interrupt(self) -> None:
        """Note that a look was not possible."""
        self._looked_at = None

    def amnesty(self, *, now: datetime) -> Amnesty | None:
        """Return until when nobody is judged; None where anybody may be."""
        return amnesty(back_since=self._back_since, lives_for=self.lives_for, now=now, what="store or broker")


@dataclass(kw_only=True)
class Observer(Generic[Thing]):
    """Measures spans by this process's own looks, which no clock of another machine can distort.

    It starts anew after each gap between them, and then finds nothing for one time-to-live: amnesty.

    Attributes:
        lives_for: See `Looks`.
    """

    lives_for: timedelta
    _since: dict[Thing, datetime] = field(default_factory=dict, init=False)
    _looks: Looks = field(init=False)

    def __post_init__(self) -> None:
        self._looks = Looks(lives_for=self.lives_for)

    def look(self, things: Iterable[Thing], *, now: datetime) -> Mapping[Thing, timedelta]:
        """Note what is seen at this look; return for how long each has been seen, without a gap."""
        if self._looks.look(now=now) is None:
            self._since = {}
        self._since = {thing: self._since.get(thing, now) for thing in things}
        if self.amnesty(now=now) is not None:
            return {}
        return {thing: now - since for thing, since in self._since.items()}

    def interrupt(self) -> None:
        """Note that a look was not possible."""
        self._looks.interrupt()

    def amnesty(self, *, now: datetime) -> Amnesty | None:
        """Return until when nobody is judged; None where anybody may be."""
        return self._looks.amnesty(now=now)

"""Observing: for how long this process itself has seen that things stand as they do."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from slackwater.core.sweep import Amnesty, amnesty

Thing = TypeVar("Thing", bound=Hashable)


@dataclass(kw_only=True)
class Observer(Generic[Thing]):
    """Measures spans by this process's own looks, which no clock of another machine can distort.

    It starts anew after each time in which it could not look (the store or the broker was away, or this process was
    stopped), and then finds nothing for one time-to-live: amnesty.

    Attributes:
        lives_for: A gap between two looks that is longer than this was an outage; the length of the amnesty.
    """

    lives_for: timedelta
    _since: dict[Thing, datetime] = field(default_factory=dict, init=False)
    _looked_at: datetime | None = field(default=None, init=False)
    _back_since: datetime | None = field(default=None, init=False)

    def look(self, things: Iterable[Thing], *, now: datetime) -> Mapping[Thing, timedelta]:
        """Note what is seen at this look; return for how long each has been seen, without a gap."""
        before, self._looked_at = self._looked_at, now
        if before is None or now - before > self.lives_for:
            self._since, self._back_since = {}, now
        self._since = {thing: self._since.get(thing, now) for thing in things}
        if self.amnesty(now=now) is not None:
            return {}
        return {thing: now - since for thing, since in self._since.items()}

    def interrupt(self) -> None:
        """Note that a look was not possible."""
        self._looked_at = None

    def amnesty(self, *, now: datetime) -> Amnesty | None:
        """Return until when nobody is judged; None where anybody may be."""
        return amnesty(back_since=self._back_since, lives_for=self.lives_for, now=now, what="store or broker")

"""A strike: one thing that chaos does to a night, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class StrikeKind(StrEnum):
    """What chaos does."""

    KILL = "kill -9"
    """Of a whole process tree; it is started again after a while."""
    KILL_CHILD = "kill -9 of a pool's child"
    """Its worker lives, and makes another one."""
    FREEZE = "SIGSTOP"
    """Of a whole process tree; SIGCONT comes after a while."""
    RESTART = "SIGTERM"
    """To a process that then ends in order; it is started again after a while."""
    DROP = "connections dropped"
    """All that are open; new ones are taken at once."""
    STALL = "nothing gets through"
    """Connections stay open, and what was said arrives after a while."""
    REFUSE = "connections refused"
    """Those that are open break, and new ones are taken after a while."""


ON_PROCESSES = frozenset({StrikeKind.KILL, StrikeKind.KILL_CHILD, StrikeKind.FREEZE, StrikeKind.RESTART})
ON_LINKS = frozenset(StrikeKind) - ON_PROCESSES


@dataclass(frozen=True, kw_only=True)
class Strike:
    """A strike to come.

    Attributes:
        moment: After the night's first instant, run clock.
        kind: What is done.
        target: To whom: a process of the night, or the link to a server, by its name.
        lasts: How long the target stays away, stopped or cut off; zero for what is over at once.
    """

    moment: timedelta
    kind: StrikeKind
    target: str
    lasts: timedelta = timedelta(0)

    @property
    def ends(self) -> timedelta:
        """Return when its target is let be, after the night's first instant."""
        return self.moment + self.lasts


@dataclass(frozen=True, kw_only=True)
class Struck:
    """A strike that was made.

    Attributes:
        at: When (run clock).
        kind: What was done.
        target: To whom.
        lasts: How long it was to last.
        effect: What it did, in a few words.
        recovered_at: When the target was there again; None where it never was.
        recovery: What brought it back, in a few words.
    """

    at: datetime
    kind: StrikeKind
    target: str
    lasts: timedelta
    effect: str
    recovered_at: datetime | None = None
    recovery: str = ""

"""What a strike leaves behind until its target is there again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from nightshift.chaos.acts import children_of, kill_tree, wake_tree

ENDS_WITHIN = timedelta(seconds=20)
"""How long a process that was asked to end may take, as an orchestrator gives it; then it is killed."""


class Wound(Protocol):
    """Something that is away, stopped or cut off."""

    def heal(self, now: datetime, /) -> str | None:
        """Do what is due; return what brought the target back, once it is there again."""
        ...


@dataclass(kw_only=True)
class Away:
    """A process that ends, and is to be started again.

    Attributes:
        pid: Its pid.
        lasts: How long it is away once it has ended.
        is_there: Tells whether it is among the children still: its death has not been seen yet.
        start: Starts it again.
        until: When it is started again; None while it ends in its own time.
        patience_ends_at: When it is killed if it has not ended; None for a process that was killed.
    """

    pid: int
    lasts: timedelta
    is_there: Callable[[], bool]
    start: Callable[[], None]
    until: datetime | None = None
    patience_ends_at: datetime | None = None

    def heal(self, now: datetime, /) -> str | None:
        """Start it again when its time has come; kill it where it does not end."""
        if self.until is None:
            if self.patience_ends_at is not None and now > self.patience_ends_at:
                kill_tree(self.pid)
            return None
        if now < self.until or self.is_there():
            return None
        self.start()
        return "started again"

    def note_death(self, now: datetime) -> None:
        """Count from now how long it is away, unless that was decided before."""
        self.until = self.until or now + self.lasts


@dataclass(frozen=True, kw_only=True)
class Frozen:
    """A process tree that is stopped."""

    pid: int
    until: datetime

    def heal(self, now: datetime, /) -> str | None:
        """Let it go on when its time has come."""
        if now < self.until:
            return None
        wake_tree(self.pid)
        return "SIGCONT"


@dataclass(frozen=True, kw_only=True)
class Bereaved:
    """A worker whose pool has lost a child."""

    worker_pid: int
    child_pid: int
    children_count: int

    def heal(self, _now: datetime, /) -> str | None:
        """See whether its pool is whole again."""
        others = [each for each in children_of(self.worker_pid) if each != self.child_pid]
        return "its worker made another one" if len(others) >= self.children_count else None


@dataclass(frozen=True, kw_only=True)
class Cut:
    """A link that stalls or refuses."""

    until: datetime
    mend: Callable[[], object]

    def heal(self, now: datetime, /) -> str | None:
        """Mend it when its time has come."""
        if now < self.until:
            return None
        self.mend()
        return "the link works again"

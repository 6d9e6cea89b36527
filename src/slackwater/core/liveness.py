"""Liveness: whose silence means that he is dead."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID


@dataclass(frozen=True, kw_only=True)
class Owner:
    """One start of a worker process: what owns the messages that are delivered to it.

    Attributes:
        worker: Node name.
        boot: Drawn anew at each start; the one that its presence carries.
    """

    worker: str
    boot: UUID


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether a worker process is dead.

    Attributes:
        dead: It is.
        reason: Why, or why not.
    """

    dead: bool
    reason: str


def is_dead(
    *, presence_lapsed: bool, connections: int | None, lapsed_for: timedelta, frozen_after: timedelta | None
) -> Verdict:
    """Decide whether a worker process is dead (failure detector).

    Two witnesses must agree, since each errs alone: a store that is slow lets a living worker's presence lapse, and a
    network that blinks drops its connections. A stopped process keeps its connections, so that witness is heard only
    for so long.

    Args:
        presence_lapsed: Its sign of life is older than its time-to-live.
        connections: Connections of it that the broker sees; None where the broker cannot tell.
        lapsed_for: How long ago the presence lapsed.
        frozen_after: After that long a process that is seen and says nothing counts as dead; None for never.
    """
    if not presence_lapsed:
        return Verdict(dead=False, reason="its presence is fresh")
    if connections is None:
        return Verdict(dead=True, reason="its presence lapsed, and the broker cannot tell its connections")
    if connections == 0:
        return Verdict(dead=True, reason="its presence lapsed, and the broker sees no connection of it")
    if frozen_after is not None and lapsed_for >= frozen_after:
        silent = f"its presence lapsed {lapsed_for.total_seconds():.0f} s ago"
        return Verdict(dead=True, reason=f"{silent}: it is stopped, though the broker still sees it")
    return Verdict(dead=False, reason=f"the broker sees {connections} of its connections")


def last_sign(*, said_at: datetime, looked_before: datetime, now: datetime) -> datetime:
    """Return when a sign of life that was not there at the look before was given, by the observer's own clock.

    Said by a clock that agrees with ours it lies between the two looks; otherwise it is moved there. So a worker whose
    clock is wrong is not taken for silent.

    Args:
        said_at: The instant that the sign carries, of the worker's clock.
        looked_before: The look before; the sign came after it.
        now: This look.
    """
    return min(max(said_at, looked_before), now)

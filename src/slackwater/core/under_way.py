"""Runs under way: what is kept of a job while its body runs under a lease, and when it is lost.

The message of such a job is kept with its run once it has run for a moment, since the broker's copy may go with its
worker: popped by a process that is stopped and then killed, deleted by hand, in the last second of a broker that lost
its machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from slackwater.core.message import Message


class Start(NamedTuple):
    """One start of a job: what the store compares before it acts on it.

    Attributes:
        job: Its id.
        tries: Which try, from 0.
        attempt: Which started delivery of that try, from 1.
    """

    job: str
    tries: int
    attempt: int


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A job that a worker has in its pool: kept if the store says that its body runs there under this lease.

    Attributes:
        job: Its id.
        tries: Which try, from 0.
        task: Its task's name.
        lane: Its lane; None for a task that has none.
        lease: The lease that it asks for.
        key: Its key; None for none.
        message: All of it; None where it is not to be kept.
    """

    job: str
    tries: int
    task: str
    lane: str | None
    lease: str
    key: str | None = None
    message: Message | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class UnderWay:
    """A job whose body was let in under a lease, and has not told its end.

    Attributes:
        start: Which start of it.
        task: Its task's name.
        lane: Its lane; None for a task that had none when it began.
        lease: The lease that it took.
        key: Its key; None for none.
        message: All of it; None where it cannot be kept.
    """

    start: Start
    task: str
    lane: str | None
    lease: str
    key: str | None = None
    message: Message | None = field(default=None, repr=False, compare=False)

    @property
    def job(self) -> str:
        """Return the job's id."""
        return self.start.job


@dataclass(frozen=True)
class Leave:
    """Nothing is done: it may still come again by itself."""


@dataclass(frozen=True)
class TakeBack:
    """It waits in the store, to be started again under its own id."""

    reason: str


@dataclass(frozen=True)
class GiveUp:
    """It ends as dead."""

    reason: str


Fate = Leave | TakeBack | GiveUp


def fate_of(
    *, leaseless_for: timedelta, lost_after: timedelta, kept: bool, served: bool, hopeless_after: timedelta
) -> Fate:
    """Decide what becomes of a run whose lease has ended.

    Its attempts are not counted here: whoever starts it again asks to, as any delivery does, and poison is buried then.

    Args:
        leaseless_for: How long the lease has been seen to be over, without a gap.
        lost_after: After that long no message comes again by itself: a dead worker's are back by then.
        kept: Its message is in the store.
        served: Its lane is one of the application's, so that what waits for it goes out.
        hopeless_after: After that long it is given up, where it cannot be started again.
    """
    seconds = f"its lease ended {leaseless_for.total_seconds():.0f} s ago without a word of its end"
    if kept and served:
        return TakeBack(f"lost: {seconds}") if leaseless_for >= lost_after else Leave()
    if leaseless_for < max(lost_after, hopeless_after):
        return Leave()
    return GiveUp(f"{seconds}, and {'its message is not kept' if not kept else 'its lane is gone'}")

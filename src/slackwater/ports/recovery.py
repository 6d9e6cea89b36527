"""What is out of circulation, and what sweepers do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from slackwater.core.dead_letter import DeadLetter, Pause
from slackwater.core.sweep import Sweep


@dataclass(frozen=True, kw_only=True)
class LetterFilter:
    """Which dead letters; what is None does not matter.

    Attributes:
        lane: Of that lane.
        task: Of that task.
        cause: Of that cause.
        since: Buried at that instant or later (run clock).
        open_only: Only those that were neither replayed nor discarded.
    """

    lane: str | None = None
    task: str | None = None
    cause: str | None = None
    since: datetime | None = None
    open_only: bool = True


class DeadLetterStore(Protocol):
    """Dead letters, capped in number; and the lanes that are paused."""

    def bury(self, letters: Sequence[DeadLetter], *, full_per_cause: int) -> None:
        """Keep letters; the first of a job stays.

        Args:
            letters: What to keep.
            full_per_cause: So many open letters of one lane and cause keep their message; a later one keeps all but
                its message and its traceback. Letters that are buried at the same moment may pass it by a few.
        """
        ...

    def list(self, which: LetterFilter, *, limit: int) -> Sequence[DeadLetter]:
        """Return letters, newest first, at most `limit`."""
        ...

    def get(self, job: str) -> DeadLetter | None:
        """Return one, discarded ones too."""
        ...

    def mark_replayed(self, job: str, *, as_job: str) -> bool:
        """Record a replay before it is published; False where it was replayed or discarded before.

        Recorded again under the same id it is True again: a replay that was not published may be repeated.
        """
        ...

    def discard(self, jobs: Sequence[str], *, at: datetime) -> int:
        """Take letters out of sight and drop their messages; return how many were open."""
        ...

    def counts(self, *, since: datetime) -> Mapping[tuple[str | None, str], int]:
        """Return how many were buried since an instant (run clock), by lane and cause."""
        ...

    def prune(self, *, before: datetime) -> int:
        """Delete those buried before an instant; return how many."""
        ...

    def pause(self, pauses: Sequence[Pause]) -> Sequence[Pause]:
        """Pause lanes; return those that were not paused before. The others are paused until the later instant."""
        ...

    def pauses(self) -> Sequence[Pause]:
        """Return the lanes that are paused, by lane."""
        ...

    def resume(self, lane: str) -> bool:
        """Let a lane work again; False where it was not paused."""
        ...


class SweepStore(Protocol):
    """What sweepers did last."""

    def record(self, sweep: Sweep) -> None:
        """Keep a sweeper's latest round."""
        ...

    def all(self) -> Sequence[Sweep]:
        """Return each sweeper's latest round, by name."""
        ...

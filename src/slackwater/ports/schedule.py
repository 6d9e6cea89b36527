"""What the schedule keeps: occurrences, their fan-outs, and endings of jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from slackwater.core.job import JobState
from slackwater.core.occurrence import Occurrence, OccurrenceState


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a job ended that did not end through its body.

    Attributes:
        job: Its id.
        state: `expired`, so far.
        reason: Why.
        task: Its task's name.
        lane: Its lane; None where it had none.
        at: When.
    """

    job: str
    state: JobState
    reason: str
    task: str
    lane: str | None
    at: datetime


class OccurrenceStore(Protocol):
    """Occurrences, and up to where each entry has been looked at."""

    def watermarks(self) -> Mapping[str, datetime]:
        """Return each entry's watermark (calendar clock)."""
        ...

    def admit(self, occurrences: Sequence[Occurrence], *, watermarks: Mapping[str, datetime]) -> frozenset[UUID]:
        """Record occurrences that are new and advance watermarks (never back), in one transaction.

        Returns:
            The ids that were new; one already recorded by anyone is left as it is.
        """
        ...

    def advance(self, occurrence: UUID, *, to: OccurrenceState, at: datetime, reason: str | None = None) -> bool:
        """Move an open occurrence on; stamps published_at (queued), started_at (running) or ended_at (final) once.

        Returns:
            True if it moved or was there already; False if it is final, unknown, or would move back (a state never
            goes back: due, queued, running, final).
        """
        ...

    def open(self) -> Sequence[Occurrence]:
        """Return those due, queued or running, oldest first, with their jobs counted."""
        ...

    def since(self, due_at: datetime) -> Sequence[Occurrence]:
        """Return those due at or after an instant of the calendar, by due instant then entry, jobs counted."""
        ...

    def get(self, occurrence: UUID) -> Occurrence | None:
        """Return one, its jobs counted; None if there is none."""
        ...


class FanOutStore(Protocol):
    """The jobs of occurrences' fan-outs: a durable row each, from before they are published."""

    def add(self, occurrence: UUID, jobs: Sequence[str]) -> None:
        """Record jobs as queued; those already recorded are left as they are."""
        ...

    def unsettled(self, occurrence: UUID, *, after: str, limit: int) -> Sequence[str]:
        """Return ids in no final state that sort after `after`, in order, at most `limit`."""
        ...

    def settle(self, states: Mapping[str, JobState], *, at: datetime) -> None:
        """Record states; a final state is never changed."""
        ...


class EndingStore(Protocol):
    """Endings of jobs that did not end through their body."""

    def record(self, endings: Sequence[Ending]) -> None:
        """Record; the first ending of a job stays."""
        ...

    def find(self, jobs: Iterable[str]) -> Mapping[str, Ending]:
        """Return the endings of those jobs that have one."""
        ...

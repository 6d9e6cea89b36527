"""Ports: what the engine needs of the world, as small protocols.

Instants called `at` and `now` are of the run clock unless they say calendar. Every act of a store is one
transaction, and safe to repeat. A store that does not answer raises `StoreUnavailable`, a broker `BrokerUnavailable`.
Each port has one suite of contract tests, which every adapter passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from slackwater.core.job import JobState
from slackwater.core.occurrence import Occurrence, OccurrenceState
from slackwater.core.reading import LaneReading, Presence, QueueReading


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


class PresenceStore(Protocol):
    """Workers' signs of life."""

    def refresh(self, presence: Presence) -> None:
        """Write one worker's row, in one statement."""
        ...

    def all(self) -> Sequence[Presence]:
        """Return every row, also of workers that are gone, by worker."""
        ...

    def forget(self, worker: str, *, boot: UUID) -> None:
        """Remove a worker's row at its orderly end, unless it has been started anew since."""
        ...


class ReadingStore(Protocol):
    """Readings over time."""

    def append(self, readings: Sequence[LaneReading]) -> None:
        """Record; the same lane and instant twice is one."""
        ...

    def between(self, since: datetime, until: datetime) -> Sequence[LaneReading]:
        """Return those of [since, until), by instant then lane."""
        ...

    def prune(self, before: datetime) -> int:
        """Delete those before an instant; return how many."""
        ...


class Store(Protocol):
    """All that is kept, in parts."""

    @property
    def occurrences(self) -> OccurrenceStore: ...  # noqa: D102 - the part's own docstring says it
    @property
    def fan_outs(self) -> FanOutStore: ...  # noqa: D102
    @property
    def endings(self) -> EndingStore: ...  # noqa: D102
    @property
    def presence(self) -> PresenceStore: ...  # noqa: D102
    @property
    def readings(self) -> ReadingStore: ...  # noqa: D102

    def check(self) -> None:
        """Make sure that it answers and is of this program's version.

        Raises:
            StoreUnavailable: It does not answer.
            SchemaOutdated: It does, with another version's tables.
        """
        ...

    def migrate(self) -> None:
        """Bring it to this program's version; safe from several processes at once."""
        ...

    def release_connections(self) -> None:
        """Drop pooled connections without closing them: for a process that has just been forked."""
        ...

    def close(self) -> None:
        """Close its connections."""
        ...


class Publisher(Protocol):
    """Hands the parent job of an occurrence to the broker."""

    def publish(self, occurrence: Occurrence) -> None:
        """Publish under the occurrence's id; at least once, so repeating is safe for whoever guards by id.

        Raises:
            BrokerUnavailable: Not confirmed; `outcome_unknown` tells whether it may have been sent.
        """
        ...


class Gauge(Protocol):
    """Reads queues from the broker."""

    def read(self, queues: Sequence[str]) -> Mapping[str, QueueReading]:
        """Return what the broker says of each queue; one that it does not know has nothing ready.

        Raises:
            BrokerUnavailable: The broker does not answer.
        """
        ...

    def close(self) -> None:
        """Close its connection."""
        ...


class Results(Protocol):
    """States of jobs as the result backend knows them."""

    def states(self, jobs: Sequence[str]) -> Mapping[str, JobState]:
        """Return the states of those that it knows."""
        ...

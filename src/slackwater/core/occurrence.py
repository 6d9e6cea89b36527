"""Occurrences: one run of an entry, and what it has come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from slackwater.core.job import JobState


class OccurrenceState(StrEnum):
    """The states of an occurrence."""

    DUE = "due"
    """Recorded, not yet published."""
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"
    MISSED = "missed"

    @property
    def final(self) -> bool:
        """Tell whether an occurrence in this state stays there."""
        return self not in OPEN_STATES


_ONWARD = (OccurrenceState.DUE, OccurrenceState.QUEUED, OccurrenceState.RUNNING)
OPEN_STATES = frozenset(_ONWARD)


def sources(to: OccurrenceState) -> frozenset[OccurrenceState]:
    """Return the states from which an occurrence comes to a state, that state itself included.

    It never goes back (due, queued, running, final), and a final state is left for no other. That a move may be
    repeated is what lets whoever has lost the answer ask again.
    """
    onward = _ONWARD if to.final else _ONWARD[: _ONWARD.index(to)]
    return frozenset({*onward, to})


@dataclass(frozen=True, kw_only=True)
class Occurrence:
    """One run of an entry. `due_at` and `start_by` are of the calendar clock, the other instants of the run clock.

    Attributes:
        id: Also the id of its parent job.
        entry: Name of the entry.
        task: Name of the task.
        args: Positional arguments of the task.
        kwargs: Keyword arguments of the task.
        lane: Lane of the task; None where the task has none.
        elastic: It, and its fan-out, may be held.
        due_at: When it was due.
        start_by: Last instant at which it, and each job of its fan-out, may start for the first time.
        state: What it has come to.
        reason: Why it is in that state, where that is not plain.
        published_at: When its parent job was handed to the broker.
        started_at: When its parent's body first started.
        ended_at: When it was found terminal.
        jobs: Jobs of its fan-out by state.
    """

    id: UUID
    entry: str
    task: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    lane: str | None = None
    elastic: bool = False
    due_at: datetime
    start_by: datetime
    state: OccurrenceState = OccurrenceState.DUE
    reason: str | None = None
    published_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    jobs: Mapping[JobState, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What an occurrence has come to, and why."""

    state: OccurrenceState
    reason: str | None = None


_PARENT_ENDS = {
    JobState.FAILED: OccurrenceState.FAILED,
    JobState.DEAD: OccurrenceState.FAILED,
    JobState.EXPIRED: OccurrenceState.EXPIRED,
    JobState.REVOKED: OccurrenceState.EXPIRED,
}


def judge(parent: JobState | None, jobs: Mapping[JobState, int], *, now: OccurrenceState) -> Verdict:
    """Decide what an occurrence has come to: terminal once its parent and all its jobs are.

    Args:
        parent: State of its parent job; None where nothing is known yet.
        jobs: Jobs of its fan-out, counted by state.
        now: The state that it is in.
    """
    if parent is None or parent in (JobState.HELD, JobState.QUEUED):
        return Verdict(state=now)
    open_count = sum(count for state, count in jobs.items() if not state.final)
    if parent is JobState.RUNNING or open_count:
        return Verdict(state=OccurrenceState.RUNNING)
    if (end := _PARENT_ENDS.get(parent)) is not None:
        return Verdict(state=end, reason=f"its parent job ended as {parent}")
    return _judge_fan_out(jobs)


def _judge_fan_out(jobs: Mapping[JobState, int]) -> Verdict:
    total = sum(jobs.values())
    failed = jobs.get(JobState.FAILED, 0) + jobs.get(JobState.DEAD, 0)
    expired = jobs.get(JobState.EXPIRED, 0) + jobs.get(JobState.REVOKED, 0)
    if failed:
        return Verdict(state=OccurrenceState.FAILED, reason=f"{failed} of {total} jobs failed")
    if expired:
        return Verdict(state=OccurrenceState.EXPIRED, reason=f"{expired} of {total} jobs expired")
    return Verdict(state=OccurrenceState.DONE)

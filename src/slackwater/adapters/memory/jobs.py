"""Jobs of fan-outs, and the endings of jobs, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from threading import Lock
from uuid import UUID

from slackwater.adapters.memory.instants import in_utc
from slackwater.core.job import JobState
from slackwater.ports import Ending


class MemoryFanOuts:
    """The fan-out store."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_occurrence: dict[UUID, dict[str, JobState]] = {}
        self._owner: dict[str, UUID] = {}

    def add(self, occurrence: UUID, jobs: Sequence[str]) -> None:
        """Record jobs as queued; those already recorded are left as they are."""
        with self._lock:
            for job in jobs:
                owner = self._owner.setdefault(job, occurrence)
                self._by_occurrence.setdefault(owner, {}).setdefault(job, JobState.QUEUED)

    def unsettled(self, occurrence: UUID, *, after: str, limit: int) -> Sequence[str]:
        """Return ids in no final state that sort after `after`, in order, at most `limit`."""
        with self._lock:
            jobs = self._by_occurrence.get(occurrence, {})
            return sorted(job for job, state in jobs.items() if job > after and not state.final)[:limit]

    def settle(self, states: Mapping[str, JobState], *, at: datetime) -> None:  # noqa: ARG002 - the port's shape
        """Record states; a final state is never changed."""
        with self._lock:
            for job, state in states.items():
                jobs = self._by_occurrence[self._owner[job]] if job in self._owner else {}
                if job in jobs and not jobs[job].final:
                    jobs[job] = state

    def counted(self, occurrence: UUID) -> dict[JobState, int]:
        """Return an occurrence's jobs, counted by state."""
        with self._lock:
            return dict(Counter(self._by_occurrence.get(occurrence, {}).values()))


class MemoryEndings:
    """The ending store."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_job: dict[str, Ending] = {}

    def record(self, endings: Sequence[Ending]) -> None:
        """Record; the first ending of a job stays."""
        with self._lock:
            for one in endings:
                self._by_job.setdefault(one.job, replace(one, at=in_utc(one.at)))

    def find(self, jobs: Iterable[str]) -> Mapping[str, Ending]:
        """Return the endings of those jobs that have one."""
        with self._lock:
            return {job: self._by_job[job] for job in jobs if job in self._by_job}

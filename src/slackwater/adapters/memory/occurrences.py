"""Occurrences and watermarks in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from threading import Lock
from uuid import UUID

from slackwater.adapters import arguments
from slackwater.adapters.memory.instants import in_utc
from slackwater.adapters.memory.jobs import MemoryFanOuts
from slackwater.core.occurrence import Occurrence, OccurrenceState, sources


class MemoryOccurrences:
    """The occurrence store."""

    def __init__(self, fan_outs: MemoryFanOuts) -> None:
        self._lock = Lock()
        self._fan_outs = fan_outs
        self._by_id: dict[UUID, Occurrence] = {}
        self._due: set[tuple[str, datetime]] = set()
        self._watermarks: dict[str, datetime] = {}

    def watermarks(self) -> Mapping[str, datetime]:
        """Return each entry's watermark."""
        with self._lock:
            return dict(self._watermarks)

    def admit(self, occurrences: Sequence[Occurrence], *, watermarks: Mapping[str, datetime]) -> frozenset[UUID]:
        """Record occurrences that are new and advance watermarks; return the ids that were new."""
        rows = [_kept(one) for one in occurrences]
        marks = {entry: in_utc(at) for entry, at in watermarks.items()}
        with self._lock:
            for entry, at in marks.items():
                self._watermarks[entry] = max(self._watermarks.get(entry, at), at)
            return frozenset(one.id for one in rows if self._admit(one))

    def _admit(self, one: Occurrence) -> bool:
        if one.id in self._by_id or (one.entry, one.due_at) in self._due:
            return False
        self._by_id[one.id] = one
        self._due.add((one.entry, one.due_at))
        return True

    def advance(self, occurrence: UUID, *, to: OccurrenceState, at: datetime, reason: str | None = None) -> bool:
        """Move an open occurrence on."""
        with self._lock:
            one = self._by_id.get(occurrence)
            if one is None or one.state not in sources(to):
                return False
            self._by_id[occurrence] = _moved(one, to=to, at=in_utc(at), reason=reason)
            return True

    def open(self) -> Sequence[Occurrence]:
        """Return those due, queued or running, oldest first."""
        return self._sorted(lambda one: not one.state.final)

    def since(self, due_at: datetime) -> Sequence[Occurrence]:
        """Return those due at or after an instant of the calendar."""
        return self._sorted(lambda one: one.due_at >= due_at)

    def get(self, occurrence: UUID) -> Occurrence | None:
        """Return one; None if there is none."""
        return next(iter(self._sorted(lambda one: one.id == occurrence)), None)

    def _sorted(self, wanted: Callable[[Occurrence], bool]) -> Sequence[Occurrence]:
        with self._lock:
            found = [one for one in self._by_id.values() if wanted(one)]
        found.sort(key=lambda one: (one.due_at, one.entry))
        return [replace(_kept(one), jobs=self._fan_outs.counted(one.id)) for one in found]


def _kept(one: Occurrence) -> Occurrence:
    # Through JSON, so that what comes out is a copy, and of the kinds of value that a database would give.
    return replace(
        one,
        args=arguments.positional(arguments.written(one.args, entry=one.entry)),
        kwargs=arguments.keywords(arguments.written(one.kwargs, entry=one.entry)),
        due_at=in_utc(one.due_at),
        start_by=in_utc(one.start_by),
        jobs={},
    )


def _moved(one: Occurrence, *, to: OccurrenceState, at: datetime, reason: str | None) -> Occurrence:
    if to is one.state:
        return replace(one, reason=one.reason if one.reason is not None else reason)
    moved = replace(one, state=to, reason=reason)
    if to is OccurrenceState.QUEUED:
        return replace(moved, published_at=one.published_at or at)
    if to is OccurrenceState.RUNNING:
        return replace(moved, started_at=one.started_at or at)
    return replace(moved, ended_at=one.ended_at or at)

"""Dead letters and pauses of lanes, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from threading import Lock

from slackwater.adapters import kept_messages
from slackwater.adapters.memory.instants import in_utc
from slackwater.adapters.memory.kept import kept
from slackwater.core.dead_letter import DeadLetter, Pause
from slackwater.ports.recovery import LetterFilter


class MemoryDeadLetters:
    """The dead-letter store."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_job: dict[str, DeadLetter] = {}
        self._discarded: set[str] = set()
        self._pauses: dict[str, Pause] = {}

    def bury(self, letters: Sequence[DeadLetter], *, full_per_cause: int) -> None:
        """Keep letters; the first of a job stays, and only so many of one lane and cause are kept whole."""
        rows = [_kept(one) for one in letters]
        with self._lock:
            for one in rows:
                if one.job not in self._by_job:
                    full = self._whole(one.lane, one.cause) >= full_per_cause
                    self._by_job[one.job] = replace(one, message=None, traceback="") if full else one

    def _whole(self, lane: str | None, cause: str) -> int:
        same = (one for one in self._by_job.values() if (one.lane, one.cause) == (lane, cause))
        return sum(one.message is not None and self._is_open(one) for one in same)

    def list(self, which: LetterFilter, *, limit: int) -> Sequence[DeadLetter]:
        """Return letters, newest first, at most `limit`."""
        with self._lock:
            found = [one for one in self._by_job.values() if self._is_wanted(one, which)]
        found.sort(key=lambda one: one.job)
        found.sort(key=lambda one: one.buried_at, reverse=True)
        return [_kept(one) for one in found[:limit]]

    def get(self, job: str) -> DeadLetter | None:
        """Return one, discarded ones too."""
        with self._lock:
            found = self._by_job.get(job)
        return None if found is None else _kept(found)

    def mark_replayed(self, job: str, *, as_job: str) -> bool:
        """Record a replay before it is published; False where it was replayed otherwise, or discarded, before."""
        with self._lock:
            one = self._by_job.get(job)
            if one is None or job in self._discarded or one.replayed_as not in (None, as_job):
                return False
            self._by_job[job] = replace(one, replayed_as=as_job)
            return True

    def discard(self, jobs: Sequence[str], *, at: datetime) -> int:
        """Take letters out of sight and drop their messages; return how many were open."""
        in_utc(at)
        with self._lock:
            found = [self._by_job[job] for job in set(jobs) if job in self._by_job]
            open_count = sum(self._is_open(one) for one in found)
            self._by_job |= {one.job: replace(one, message=None) for one in found}
            self._discarded |= {one.job for one in found}
            return open_count

    def counts(self, *, since: datetime) -> Mapping[tuple[str | None, str], int]:
        """Return how many were buried since an instant, by lane and cause."""
        with self._lock:
            return dict(Counter((one.lane, one.cause) for one in self._by_job.values() if one.buried_at >= since))

    def prune(self, *, before: datetime) -> int:
        """Delete those buried before an instant; return how many."""
        with self._lock:
            gone = [job for job, one in self._by_job.items() if one.buried_at < before]
            for job in gone:
                del self._by_job[job]
            self._discarded.difference_update(gone)
        return len(gone)

    def pause(self, pauses: Sequence[Pause]) -> Sequence[Pause]:
        """Pause lanes; return those that were not paused before. The others are paused until the later instant."""
        fresh = []
        with self._lock:
            for given in pauses:
                one = replace(given, since=in_utc(given.since), until=in_utc(given.until))
                known = self._pauses.get(one.lane)
                if known is None:
                    fresh.append(given)
                self._pauses[one.lane] = one if known is None else replace(known, until=max(known.until, one.until))
        return fresh

    def pauses(self) -> Sequence[Pause]:
        """Return the lanes that are paused, by lane."""
        with self._lock:
            return [one for _, one in sorted(self._pauses.items())]

    def resume(self, lane: str) -> bool:
        """Let a lane work again; False where it was not paused."""
        with self._lock:
            return self._pauses.pop(lane, None) is not None

    def _is_open(self, one: DeadLetter) -> bool:
        return one.replayed_as is None and one.job not in self._discarded

    def _is_wanted(self, one: DeadLetter, which: LetterFilter) -> bool:
        asked = ((which.lane, one.lane), (which.task, one.task), (which.cause, one.cause))
        if any(wanted is not None and wanted != found for wanted, found in asked):
            return False
        if which.since is not None and one.buried_at < which.since:
            return False
        return not which.open_only or self._is_open(one)


def _kept(one: DeadLetter) -> DeadLetter:
    return replace(
        one,
        message=None if one.message is None else kept(one.message),
        cause=kept_messages.legible(one.cause),
        reason=kept_messages.legible(one.reason),
        traceback=kept_messages.legible(one.traceback),
        published_at=None if one.published_at is None else in_utc(one.published_at),
        buried_at=in_utc(one.buried_at),
    )

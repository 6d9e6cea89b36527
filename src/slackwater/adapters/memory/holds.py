"""Jobs that wait, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from operator import attrgetter
from threading import Lock
from uuid import UUID

from slackwater.adapters import kept_messages
from slackwater.adapters.memory.instants import in_utc
from slackwater.adapters.memory.kept import kept
from slackwater.adapters.memory.runs import MemoryRuns
from slackwater.core.message import Held
from slackwater.core.under_way import Start

_OLDEST = attrgetter("not_before", "held_at", "job")


@dataclass(frozen=True, kw_only=True)
class _Claim:
    boot: UUID
    until: datetime


class MemoryHolds:
    """The hold store."""

    def __init__(self, runs: MemoryRuns) -> None:
        self._lock = Lock()
        self._runs = runs
        self._held: dict[str, Held] = {}
        self._claims: dict[str, _Claim] = {}

    def hold(self, held: Sequence[Held]) -> None:
        """Keep jobs; one that is held already is replaced by a later try of it, or where it is claimed."""
        rows = [_kept(one) for one in held]
        with self._lock:
            for one in rows:
                known = self._held.get(one.job)
                back = known is not None and known.tries == one.tries and one.job in self._claims
                if known is None or known.tries < one.tries or back:
                    self._held[one.job] = one
                    self._claims.pop(one.job, None)

    def take_back(self, lost: Mapping[Start, Held]) -> Sequence[str]:
        """Keep jobs that are lost while under way, each in one step with its run."""
        taken = sorted(start for start in lost if self._runs.hold_run(start))
        self.hold([lost[start] for start in taken])
        return [start.job for start in taken]

    def claim(self, lanes: Mapping[str, int], *, boot: UUID, now: datetime, claimed_for: timedelta) -> Sequence[Held]:
        """Claim jobs whose time has come and whose lease is free, oldest first."""
        awaited, claimed = set[str](), list[Held]()
        left = {lane: count for lane, count in lanes.items() if count > 0}
        with self._lock:
            for one in sorted(self._held.values(), key=_OLDEST):
                if one.lane not in left or one.waits_for in awaited or not self._is_ready(one, now):
                    continue
                if one.waits_for is not None:
                    awaited.add(one.waits_for)
                if left[one.lane] > 0:
                    left[one.lane] -= 1
                    claimed.append(one)
            self._claims |= {one.job: _Claim(boot=boot, until=now + claimed_for) for one in claimed}
        return [_kept(one) for one in claimed]

    def _is_ready(self, one: Held, now: datetime) -> bool:
        claim = self._claims.get(one.job)
        if one.not_before > now or (claim is not None and claim.until > now):
            return False
        return one.waits_for is None or self._runs.lease(one.waits_for) is None

    def released(self, jobs: Sequence[str], *, boot: UUID) -> None:
        """Remove claimed jobs that are published; what was held anew meanwhile stays."""
        with self._lock:
            for job in jobs:
                claim = self._claims.get(job)
                if claim is not None and claim.boot == boot:
                    del self._held[job], self._claims[job]

    def drop(self, jobs: Sequence[str]) -> Sequence[Held]:
        """Remove jobs, claimed or not; return those that there were, oldest first."""
        with self._lock:
            found = [self._held.pop(job) for job in dict.fromkeys(jobs) if job in self._held]
            for one in found:
                self._claims.pop(one.job, None)
        return sorted(found, key=_OLDEST)

    def late(self, *, now: datetime, limit: int) -> Sequence[Held]:
        """Return jobs whose `start_by` has passed, at most `limit`, those first that passed it first."""
        with self._lock:
            found = [(one.start_by, one.job, one) for one in self._held.values() if one.start_by and one.start_by < now]
        found.sort(key=lambda each: each[:2])
        return [_kept(one) for _, _, one in found[:limit]]

    def find(self, jobs: Iterable[str]) -> Mapping[str, Held]:
        """Return those of the jobs that are held."""
        with self._lock:
            return {job: _kept(self._held[job]) for job in jobs if job in self._held}

    def counts(self) -> Mapping[str, int]:
        """Return how many are held, by lane."""
        with self._lock:
            return dict(Counter(one.lane for one in self._held.values()))


def _kept(one: Held) -> Held:
    return replace(
        one,
        message=kept(one.message),
        not_before=in_utc(one.not_before),
        start_by=None if one.start_by is None else in_utc(one.start_by),
        held_at=in_utc(one.held_at),
        reason=kept_messages.legible(one.reason),
    )

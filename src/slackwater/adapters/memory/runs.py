"""Runs, keys and leases in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from threading import RLock
from typing import Any
from uuid import UUID

from slackwater.adapters.memory.instants import in_utc
from slackwater.adapters.memory.kept import kept_or_none
from slackwater.adapters.memory.pulse import Pulse
from slackwater.core.admission import Ask, Key, Lease, Run
from slackwater.core.admissions import Known, admit_each, announce_each, key_state
from slackwater.core.job import JobState
from slackwater.core.under_way import Offer, Start, UnderWay
from slackwater.errors import StaleFence
from slackwater.ports.delivery import Announcement, Begun, Finish


@dataclass(frozen=True, kw_only=True)
class _Kept:
    lease: Lease
    expires_at: datetime
    lives_for: timedelta
    taken_at: datetime


class MemoryRuns:
    """The run store."""

    def __init__(self, pulse: Pulse) -> None:
        self._lock = RLock()
        self._pulse = pulse
        self._fences = count(1)
        self._runs: dict[str, Run] = {}
        self._keys: dict[str, Key] = {}
        self._leases: dict[str, _Kept] = {}
        self._under_way: dict[str, UnderWay] = {}
        self._changed: dict[tuple[str, str], datetime] = {}

    def begin(self, asks: Sequence[Ask]) -> Sequence[Begun]:
        """Decide for each delivery with `core.admission.admit`, and write what was decided."""
        with self._lock:
            result = admit_each(asks, self._known(), fences=self._fences)
            if any(ask.lease is not None or ask.key is not None for ask in asks):
                self._pulse.beat()
            now = self._pulse.now()
            for run in result.runs.values():
                self._put_run(run)
            for key in result.keys.values():
                self._put_key(key)
            for name in result.ended:
                del self._leases[name]
            for name, taken in result.leases.items():
                self._leases[name] = _Kept(
                    lease=taken.lease, expires_at=now + taken.lives_for, lives_for=taken.lives_for, taken_at=now
                )
            return [Begun(admission=admission, fence=fence) for admission, fence in result.decided]

    def finish(self, finishes: Sequence[Finish]) -> None:
        """Record how bodies ended, and free their leases."""
        with self._lock:
            for one in finishes:
                if not self._replaced(one):
                    self._end_run(one)
                    self._end_key(one)
                    self._forget(one)
                if one.fence is not None:
                    self._free(kept for kept in self._held() if (kept.name, kept.fence) == (one.lease, one.fence))

    def announce(self, announcements: Sequence[Announcement], *, at: datetime, stale_before: datetime) -> Sequence[str]:
        """Claim keys at dispatch; return for each the job that has the key now."""
        claims = [(one.job, one.key) for one in announcements]
        with self._lock:
            result = announce_each(claims, self._known(), at=in_utc(at), stale_before=stale_before)
            for key in result.keys.values():
                self._put_key(key)
            for name in result.ended:
                del self._leases[name]
            return result.jobs

    def hand_back(self, jobs: Sequence[tuple[str, int]], *, boot: UUID | None = None) -> None:
        """Record that deliveries go back to their queues, and free their leases."""
        with self._lock:
            for job, tries in jobs:
                held = [lease for lease in self._held() if lease.job == job]
                others = [lease for lease in held if boot is not None and lease.boot != boot]
                known = self._runs.get(job)
                if not others and (known is None or _may_end(known, tries)):
                    attempts = known.attempts if known is not None and known.tries == tries else 1
                    state = JobState.QUEUED
                    self._put_run(Run(job=job, tries=tries, attempts=attempts, handed_back=True, state=state))
                self._free(lease for lease in held if lease not in others)

    def renew(self, boot: UUID, jobs: Sequence[str], *, lives_for: timedelta) -> None:
        """Renew the leases of a worker's bodies; without any, be noted alive."""
        with self._lock:
            self._pulse.beat(lives_for)
            expires_at = self._pulse.now() + lives_for
            for name, kept in self._leases.items():
                if kept.lease.boot == boot and kept.lease.job in jobs:
                    self._leases[name] = replace(kept, expires_at=expires_at, lives_for=lives_for)

    def lapse(self, boot: UUID, jobs: Sequence[str], *, lost_for: timedelta = timedelta(0)) -> None:
        """End the leases of a worker's bodies that have died without an end."""
        with self._lock:
            taken_before = self._pulse.now() - lost_for
            theirs = [one for one in self._leases.values() if one.lease.boot == boot and one.lease.job in jobs]
            self._free(one.lease for one in theirs if one.taken_at <= taken_before)

    def lapse_all(self, boot: UUID) -> None:
        """End all leases of a worker process that is dead."""
        with self._lock:
            self._free(lease for lease in self._held() if lease.boot == boot)

    def keep(self, boot: UUID, offers: Sequence[Offer]) -> frozenset[Start]:
        """Keep jobs whose bodies run under a lease; return the starts that are kept from now on."""
        with self._lock:
            running = [(self._runs[one.job], one) for one in offers if self._runs_under_its_lease(one, boot)]
            kept = [_under_way_of(run, one) for run, one in running]
            self._under_way |= {one.job: one for one in kept}
            return frozenset(one.start for one in kept)

    def _runs_under_its_lease(self, one: Offer, boot: UUID) -> bool:
        run, lease = self._runs.get(one.job), self._leases.get(one.lease)
        runs = run is not None and run.state is JobState.RUNNING and run.tries == one.tries
        return runs and lease is not None and (lease.lease.job, lease.lease.boot) == (one.job, boot)

    def check_fence(self, connection: Any, *, lease: str, fence: int) -> None:  # noqa: ARG002 - the port's shape
        """Make sure that a lease is still held under a fence; a store in memory locks nothing until a commit.

        Raises:
            StaleFence: It is not.
        """
        with self._lock:
            kept = self._leases.get(lease)
        if kept is None or kept.lease.fence != fence:
            raise StaleFence(lease, fence)

    def runs(self, jobs: Iterable[str]) -> Mapping[str, Run]:
        """Return the runs of those jobs that have one."""
        with self._lock:
            return {job: self._runs[job] for job in jobs if job in self._runs}

    def leaseless(self, *, limit: int) -> Sequence[Start]:
        """Return the starts under way whose lease has ended, by job."""
        with self._lock:
            return sorted(one.start for one in self._under_way.values() if self._is_leaseless(one.start))[:limit]

    def under_way(self, jobs: Iterable[str]) -> Mapping[str, UnderWay]:
        """Return what is kept of jobs that are under way."""
        with self._lock:
            return {job: self._under_way[job] for job in jobs if job in self._under_way and self._is_under_way(job)}

    def hold_run(self, start: Start) -> bool:
        """Write a run down as held; False where it is not this start's, or its lease has not ended."""
        with self._lock:
            if leaseless := start.job in self._under_way and self._is_leaseless(start):
                self._put_run(replace(self._runs[start.job], state=JobState.HELD))
            return leaseless

    def _is_leaseless(self, start: Start) -> bool:
        kept = self._under_way[start.job]
        lease = self._leases.get(kept.lease)
        held = lease is not None and lease.lease.job == start.job and self._is_live(lease)
        return kept.start == start and self._is_under_way(start.job) and not held

    def _is_under_way(self, job: str) -> bool:
        run, kept = self._runs.get(job), self._under_way[job]
        return run is not None and run.state is JobState.RUNNING and Start(job, run.tries, run.attempts) == kept.start

    def key(self, name: str) -> Key | None:
        """Return what is known of a key."""
        with self._lock:
            return self._keys.get(name)

    def lease(self, name: str) -> Lease | None:
        """Return who holds a lease; None where it is free."""
        with self._lock:
            kept = self._leases.get(name)
            return kept.lease if kept is not None and self._is_live(kept) else None

    def now(self) -> datetime:
        """Return the store's own clock, in UTC."""
        return self._pulse.now()

    def prune(self, *, before: datetime) -> int:
        """Delete ended runs, ended keys and lapsed leases that changed last before an instant; return how many."""
        with self._lock:
            runs = [job for job, run in self._runs.items() if run.state.final and self._changed["run", job] < before]
            keys = [name for name, key in self._keys.items() if key.state.final and self._changed["key", name] < before]
            for job in runs:
                del self._runs[job], self._changed["run", job]
            for name in keys:
                del self._keys[name], self._changed["key", name]
            lapsed = [one for one in self._leases.values() if one.expires_at < before and not self._is_live(one)]
            self._free(one.lease for one in lapsed)
            self._under_way = {job: one for job, one in self._under_way.items() if self._is_under_way(job)}
            return len(runs) + len(keys) + len(lapsed)

    def _known(self) -> Known:
        leases = {name: replace(one.lease, live=self._is_live(one)) for name, one in self._leases.items()}
        return Known(runs=self._runs, keys=self._keys, leases=leases)

    def _held(self) -> list[Lease]:
        return [one.lease for one in self._leases.values()]

    def _is_live(self, one: _Kept) -> bool:
        return self._pulse.now() <= max(one.expires_at, self._pulse.up_since() + one.lives_for)

    def _free(self, leases: Iterable[Lease]) -> None:
        for lease in list(leases):
            del self._leases[lease.name]

    def _put_run(self, run: Run) -> None:
        self._runs[run.job] = run
        self._changed["run", run.job] = self._pulse.now()

    def _put_key(self, key: Key) -> None:
        self._keys[key.name] = key
        self._changed["key", key.name] = self._pulse.now()

    def _replaced(self, one: Finish) -> bool:
        kept = None if one.lease is None else self._leases.get(one.lease)
        return kept is not None and one.fence is not None and kept.lease.job == one.job and kept.lease.fence > one.fence

    def _end_run(self, one: Finish) -> None:
        known = self._runs.get(one.job)
        if known is None:
            run = Run(job=one.job, tries=one.tries, attempts=1, handed_back=one.handed_back, state=one.state)
            self._put_run(run)
        elif _may_end(known, one.tries) or (one.state.final and self._waits_for_its_holder(known, one)):
            attempts = known.attempts if known.tries == one.tries else 1
            back = known.handed_back or one.handed_back
            self._put_run(replace(known, tries=one.tries, attempts=attempts, handed_back=back, state=one.state))

    def _waits_for_its_holder(self, known: Run, one: Finish) -> bool:
        kept = None if one.lease is None else self._leases.get(one.lease)
        holds = kept is not None and (kept.lease.job, kept.lease.fence) == (one.job, one.fence)
        return holds and known.state in (JobState.HELD, JobState.QUEUED)

    def _forget(self, one: Finish) -> None:
        kept = self._under_way.get(one.job)
        if kept is not None and kept.start.tries <= one.tries:
            del self._under_way[one.job]

    def _end_key(self, one: Finish) -> None:
        key = None if one.key is None else self._keys.get(one.key)
        if key is None or key.job != one.job or key.state.final or self._runs[one.job].tries > one.tries:
            return
        ended_at = in_utc(one.ended_at) if one.state.final else None
        self._put_key(replace(key, state=key_state(one.state), digest=one.digest, ended_at=ended_at, lease=None))


def _under_way_of(run: Run, one: Offer) -> UnderWay:
    return UnderWay(
        start=Start(one.job, run.tries, run.attempts),
        task=one.task,
        lane=one.lane,
        lease=one.lease,
        key=one.key,
        message=kept_or_none(one.message),
    )


def _may_end(known: Run, tries: int) -> bool:
    return not known.state.final and known.tries <= tries

"""Admissions: many deliveries decided in order, each seeing what those before it took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from slackwater.core.admission import (
    Admission,
    Admit,
    Ask,
    Found,
    Key,
    KeyRule,
    Lease,
    LeaseRule,
    Run,
    admit,
    announce,
    run_after,
)
from slackwater.core.job import JobState


@dataclass(frozen=True, kw_only=True)
class Known:
    """What the store knows of all that a batch of deliveries names, locked while it is decided on.

    Attributes:
        runs: By job.
        keys: By name.
        leases: By name.
        locked: Leases that a transaction which checks a fence, or takes them, has locked.
    """

    runs: Mapping[str, Run] = field(default_factory=dict)
    keys: Mapping[str, Key] = field(default_factory=dict)
    leases: Mapping[str, Lease] = field(default_factory=dict)
    locked: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class TakenLease:
    """A lease that a delivery takes.

    Attributes:
        lease: As it is from now on.
        lives_for: Its time-to-live.
    """

    lease: Lease
    lives_for: timedelta


@dataclass(frozen=True, kw_only=True)
class Admissions:
    """What was decided, and all that is to be written.

    Attributes:
        decided: One for each delivery: the decision, and the fence of the lease that it takes.
        runs: Runs as they are from now on, by job.
        keys: Keys as they are from now on, by name.
        leases: Leases that are taken, by name.
        ended: Lapsed leases of jobs that have lost their key; to be removed, so that their fences are stale.
    """

    decided: tuple[tuple[Admission, int | None], ...]
    runs: Mapping[str, Run]
    keys: Mapping[str, Key]
    leases: Mapping[str, TakenLease]
    ended: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Announced:
    """What was decided on jobs with keys at dispatch, and all that is to be written.

    Attributes:
        jobs: For each, the job that has its key now.
        keys: Keys as they are from now on, by name.
        ended: Lapsed leases of jobs that have lost their key.
    """

    jobs: tuple[str, ...]
    keys: Mapping[str, Key]
    ended: frozenset[str]


def admit_each(asks: Sequence[Ask], known: Known, *, fences: Iterable[int]) -> Admissions:
    """Decide on each delivery in turn with `admit`.

    Args:
        asks: The deliveries, in order.
        known: What the store knows of them.
        fences: Fencing tokens never given before, rising; at least one for each ask with a lease.
    """
    state = _State(known)
    tokens = iter(fences)
    decided: list[tuple[Admission, int | None]] = []
    for ask in asks:
        found = state.found(ask)
        admission = admit(ask, found)
        fence = None
        if (run := run_after(ask, found.run, admission)) is not None:
            state.record(run)
        if isinstance(admission, Admit):
            if ask.key is not None:
                state.take_key(ask.key, job=ask.job, lease=ask.lease)
            if ask.lease is not None:
                fence = next(tokens)
                state.take_lease(ask, ask.lease, fence=fence)
        decided.append((admission, fence))
    return Admissions(
        decided=tuple(decided),
        runs=state.started,
        keys=state.changed,
        leases=state.taken,
        ended=frozenset(state.ended),
    )


def announce_each(
    claims: Sequence[tuple[str, KeyRule]], known: Known, *, at: datetime, stale_before: datetime
) -> Announced:
    """Decide at dispatch on each job with a key in turn, with `announce`.

    Args:
        claims: Jobs and their keys, in order.
        known: What the store knows of the keys, and of the leases under which their jobs run.
        at: Run clock.
        stale_before: See `announce`.
    """
    state = _State(known)
    jobs: list[str] = []
    for job, rule in claims:
        key = state.keys.get(rule.name)
        other = announce(rule, key, state.holder(key), stale_before=stale_before)
        if other is None:
            state.pass_key(Key(name=rule.name, job=job, state=JobState.QUEUED, announced_at=at), lease=None)
        jobs.append(job if other is None else other.to)
    return Announced(jobs=tuple(jobs), keys=state.changed, ended=frozenset(state.ended))


def key_state(state: JobState) -> JobState:
    """Return what a key is once its job has come to a state: queued (it comes again), done or failed."""
    if not state.final:
        return JobState.QUEUED
    return JobState.DONE if state is JobState.DONE else JobState.FAILED


class _State:
    """What is known while one delivery after the other is decided on."""

    def __init__(self, known: Known) -> None:
        self.runs, self.keys, self.leases = dict(known.runs), dict(known.keys), dict(known.leases)
        self._locked = known.locked
        self.started: dict[str, Run] = {}
        self.changed: dict[str, Key] = {}
        self.taken: dict[str, TakenLease] = {}
        self.ended: set[str] = set()

    def found(self, ask: Ask) -> Found:
        key = None if ask.key is None else self.keys.get(ask.key.name)
        return Found(
            run=self.runs.get(ask.job),
            key=key,
            key_holder=self.holder(key),
            lease=None if ask.lease is None else self.leases.get(ask.lease.name),
            lease_locked=ask.lease is not None and ask.lease.name in self._locked,
        )

    def holder(self, key: Key | None) -> Lease | None:
        if key is None or key.lease is None:
            return None
        lease = self.leases.get(key.lease)
        if lease is None or lease.job != key.job:
            return None
        # A lapsed holder that commits at this moment still does the work of the key.
        return replace(lease, live=True) if lease.name in self._locked else lease

    def record(self, run: Run) -> None:
        self.runs[run.job] = self.started[run.job] = run

    def take_key(self, rule: KeyRule, *, job: str, lease: LeaseRule | None) -> None:
        before = self.keys.get(rule.name)
        announced_at = before.announced_at if before is not None and before.job == job else None
        name = None if lease is None else lease.name
        taken = Key(name=rule.name, job=job, state=JobState.RUNNING, lease=name, announced_at=announced_at)
        self.pass_key(taken, lease=name)

    def pass_key(self, key: Key, *, lease: str | None) -> None:
        before = self.keys.get(key.name)
        holder = self.holder(before)
        # Lapsed and not taken, it could be renewed by a holder that was only slow: two bodies for one key.
        if holder is not None and holder.job != key.job and holder.name != lease and not holder.live:
            self.ended.add(holder.name)
            del self.leases[holder.name]
        self.keys[key.name] = self.changed[key.name] = key

    def take_lease(self, ask: Ask, rule: LeaseRule, *, fence: int) -> None:
        lease = Lease(name=rule.name, job=ask.job, boot=ask.boot, fence=fence, live=True)
        self.leases[rule.name] = lease
        self.taken[rule.name] = TakenLease(lease=lease, lives_for=rule.lives_for)
        self.ended.discard(rule.name)

"""Admission: may this delivery of a job run its body, and what becomes of it where it may not?

Asked only where a plain first start would not do: a job with a key or a lease, one that was released from the store,
and one that the broker delivers again. One transaction reads what is known (`Found`), this module decides, and what it
decided is written before the lock is let go.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from slackwater.core.job import JobState


class WhenTaken(StrEnum):
    """What a job does whose key or lease another job has."""

    SKIP = "skip"
    """It ends as a duplicate of the other; it gets that one's result once there is one."""
    WAIT = "wait"
    """It waits in the store, not in a slot, until the other has ended."""
    LATER = "later"
    """It comes again after a while."""
    REPLACE = "replace"
    """It takes the lease over: what the other still wants to commit is fenced out. Leases only.

    Once: what was replaced comes again, and waits then, or the two would replace each other for ever.
    """


@dataclass(frozen=True, kw_only=True)
class KeyRule:
    """A task's idempotency key.

    Attributes:
        name: The key of this job.
        fresh_since: A success before this instant (calendar clock) does not count any more; None: each counts.
        when_taken: What a repeat does while the first is under way.
    """

    name: str
    fresh_since: datetime | None = None
    when_taken: WhenTaken = WhenTaken.SKIP


@dataclass(frozen=True, kw_only=True)
class LeaseRule:
    """A task's lease.

    Attributes:
        name: The lease of this job.
        when_taken: What a job does while another holds it.
        lives_for: Its time-to-live without renewal.
    """

    name: str
    when_taken: WhenTaken = WhenTaken.WAIT
    lives_for: timedelta


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One delivery of a job that asks to start.

    Attributes:
        job: Its id.
        tries: Which try this is, from 0 (Celery's `retries`).
        task: Its task's name.
        boot: The worker process that asks.
        redelivered: The broker's flag: delivered before.
        released: It was published from the store, so that a copy of it may come without the flag.
        attempt_limit: Started deliveries that one try may have.
        key: Its key; None for none.
        lease: Its lease; None for none.
    """

    job: str
    tries: int
    task: str
    boot: UUID
    redelivered: bool
    released: bool = False
    attempt_limit: int = 3
    key: KeyRule | None = None
    lease: LeaseRule | None = None


@dataclass(frozen=True, kw_only=True)
class Run:
    """What is known of a job that asked before.

    Attributes:
        job: Its id.
        tries: Latest try that has started, from 0.
        attempts: Started deliveries of that try.
        handed_back: The last of them was handed back at a shutdown, and does not count.
        state: Running, or how it ended.
    """

    job: str
    tries: int
    attempts: int
    handed_back: bool = False
    state: JobState = JobState.RUNNING


@dataclass(frozen=True, kw_only=True)
class Key:
    """What is known of a key.

    Attributes:
        name: The key.
        job: The job that has it.
        state: Queued (announced at dispatch), running, done or failed.
        digest: SHA-256 of the result's JSON, in hex; None until there is a result.
        lease: The lease under which its job runs; None while none has begun.
        announced_at: When it was announced at dispatch (run clock); None where it never was.
        ended_at: When its job ended (calendar clock); None before.
    """

    name: str
    job: str
    state: JobState
    digest: str | None = None
    lease: str | None = None
    announced_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Lease:
    """What is known of a lease.

    Attributes:
        name: The lease.
        job: Its holder.
        boot: The worker process that runs its holder.
        fence: Its fencing token: each taking gets a higher one.
        live: It has not lapsed, by the store's own clock.
    """

    name: str
    job: str
    boot: UUID
    fence: int
    live: bool


@dataclass(frozen=True, kw_only=True)
class Found:
    """What the store knows, locked while the decision is taken.

    Attributes:
        run: Of this job.
        key: Of its key.
        key_holder: The lease under which the key's job runs, where it has one.
        lease: Of its lease.
        lease_locked: A transaction that checks the lease's fence is under way.
    """

    run: Run | None = None
    key: Key | None = None
    key_holder: Lease | None = None
    lease: Lease | None = None
    lease_locked: bool = False


@dataclass(frozen=True, kw_only=True)
class Admit:
    """The body may run.

    Attributes:
        attempt: Which started delivery of this try it is, from 1.
        takes_key: The key is this job's from now on.
        takes_lease: The lease is taken, with a new fence.
    """

    attempt: int
    takes_key: bool = False
    takes_lease: bool = False


@dataclass(frozen=True, kw_only=True)
class Resolve:
    """The job ends without its body, as another run of the same work did or will.

    Attributes:
        to: The job that does or did the work; its own id where an earlier delivery of it did.
        state: What that one has come to.
        reason: Why.
    """

    to: str
    state: JobState
    reason: str


@dataclass(frozen=True, kw_only=True)
class Wait:
    """The job waits in the store.

    Attributes:
        on: The lease that it waits for; None to come again after a while.
        reason: Why.
        own: It is its own job that has the lease, by an earlier delivery, whose body may run.
    """

    on: str | None
    reason: str
    own: bool = False


@dataclass(frozen=True, kw_only=True)
class Bury:
    """The job is taken out of circulation: its attempts are spent.

    Attributes:
        attempts: Started deliveries of this try so far.
        reason: Why.
    """

    attempts: int
    reason: str


Admission = Admit | Resolve | Wait | Bury


def key_lease(key: str) -> str:
    """Return the name of the lease that keeps two bodies for one key apart, where the task names none."""
    return f"key:{key}"


def admit(ask: Ask, found: Found) -> Admission:
    """Decide what becomes of a delivery: run, resolve to another run, wait, or bury.

    The order matters: what has ended ends again, poison is not given a lease, and a key is resolved before anybody
    waits for a lease.
    """
    run = found.run
    if run is not None and (copy := _is_copy(ask, run)) is not None:
        return copy
    attempt = _attempt(ask, run)
    if attempt > ask.attempt_limit:
        spent = attempt - 1
        return Bury(attempts=spent, reason=f"started {spent} times without an end, at most {ask.attempt_limit} allowed")
    if ask.key is not None and (taken := _key_taken(ask, ask.key, found)) is not None:
        return taken
    if ask.lease is not None and (taken := _lease_taken(ask, ask.lease, found)) is not None:
        return taken
    return Admit(attempt=attempt, takes_key=ask.key is not None, takes_lease=ask.lease is not None)


def run_after(ask: Ask, found: Run | None, admission: Admission) -> Run | None:
    """Return what is known of a job's run once a delivery is decided; None where nothing changes."""
    match admission:
        case Admit():
            return Run(job=ask.job, tries=ask.tries, attempts=admission.attempt)
        case Wait():
            # Held, so that the delivery that is released later is no copy of a body that runs.
            return Run(job=ask.job, tries=ask.tries, attempts=_attempt(ask, found) - 1, state=JobState.HELD)
        case Bury() | Resolve():
            # Not dead before its dead letter is kept: a crash in between comes here again.
            return None


def _is_copy(ask: Ask, run: Run) -> Resolve | None:
    if run.state.final:
        return Resolve(to=ask.job, state=run.state, reason=f"it has ended as {run.state}")
    if ask.tries < run.tries:
        return Resolve(to=ask.job, state=run.state, reason=f"a copy of try {ask.tries}; try {run.tries} has started")
    runs = run.state is JobState.RUNNING and ask.tries == run.tries
    if runs and ask.released and not ask.redelivered:
        return Resolve(to=ask.job, state=run.state, reason="a copy; the first of it has started")
    return None


def _attempt(ask: Ask, run: Run | None) -> int:
    # A plain job's first start leaves no row, so what is flagged and unknown had one.
    if run is None or run.tries != ask.tries:
        return 2 if ask.redelivered else 1
    if run.handed_back:
        return run.attempts
    return run.attempts + 1


def _key_taken(ask: Ask, rule: KeyRule, found: Found) -> Resolve | Wait | None:
    key, holder = found.key, found.key_holder
    if key is None:
        return None
    if key.job == ask.job:
        # Its next try, sent before an earlier delivery came again and did the work.
        done = key.state is JobState.DONE
        return (
            Resolve(to=ask.job, state=key.state, reason=f"key {rule.name}: it has done that itself") if done else None
        )
    if _is_fresh(rule, key):
        return Resolve(to=key.job, state=key.state, reason=f"key {rule.name}: done already")
    # Announced and not begun: whoever begins first does the work, and the other resolves to it when it comes.
    if not _is_under_way(key, holder) or holder is None:
        return None
    return _taken(rule.when_taken, lease=holder, what=f"key {rule.name}")


def _is_fresh(rule: KeyRule, key: Key) -> bool:
    if key.state is not JobState.DONE:
        return False
    return rule.fresh_since is None or (key.ended_at is not None and key.ended_at >= rule.fresh_since)


def _is_under_way(key: Key, holder: Lease | None) -> bool:
    return key.state is JobState.RUNNING and holder is not None and holder.live and holder.job == key.job


def _lease_taken(ask: Ask, rule: LeaseRule, found: Found) -> Resolve | Wait | None:
    lease = found.lease
    own = lease is not None and lease.job == ask.job
    if found.lease_locked:
        return Wait(on=rule.name, reason=f"lease {rule.name}: its holder commits", own=own)
    if lease is None or not lease.live:
        return None
    if own:
        # This delivery may be the only message that is left of it, so it is kept whatever the policy says.
        reason = f"lease {rule.name}: an earlier delivery of this job still has it"
        return Wait(on=rule.name, reason=reason, own=True)
    if rule.when_taken is not WhenTaken.REPLACE:
        return _taken(rule.when_taken, lease=lease, what=f"lease {rule.name}")
    if ask.redelivered or ask.tries > 0:
        return Wait(on=rule.name, reason=f"lease {rule.name}: job {lease.job} has it, and came later")
    return None


def _taken(policy: WhenTaken, *, lease: Lease, what: str) -> Resolve | Wait:
    reason = f"{what}: job {lease.job} is under way"
    if policy is WhenTaken.SKIP:
        return Resolve(to=lease.job, state=JobState.RUNNING, reason=reason)
    return Wait(on=None if policy is WhenTaken.LATER else lease.name, reason=reason)


def announce(rule: KeyRule, key: Key | None, holder: Lease | None, *, stale_before: datetime) -> Resolve | None:
    """Decide at dispatch whether a job with a key is worth publishing: unique while pending, and not if done freshly.

    Args:
        rule: The job's key.
        key: What is known of it; None for nothing.
        holder: The lease under which the key's job runs; None where none is known.
        stale_before: What was announced before this instant (run clock) and never began does not block any more: its
            message may be lost.

    Returns:
        The job that does or did the work; None where this one is to be published.
    """
    if key is None:
        return None
    if _is_fresh(rule, key):
        return Resolve(to=key.job, state=key.state, reason=f"key {rule.name}: done already")
    if _is_under_way(key, holder):
        return Resolve(to=key.job, state=key.state, reason=f"key {rule.name}: under way")
    if key.state is JobState.QUEUED and key.announced_at is not None and key.announced_at >= stale_before:
        return Resolve(to=key.job, state=key.state, reason=f"key {rule.name}: pending")
    return None

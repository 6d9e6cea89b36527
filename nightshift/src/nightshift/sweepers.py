"""Sweepers: syncs and submissions that were begun and have come to no end, though nobody is at work on them.

A worker that dies leaves a message that comes again, and a retry waits in the store; both are left alone here. What is
found has neither: its message was lost, deleted by hand, or with a broker that lost its disk. On a good night they find
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from nightshift.app import connections, journal, sw
from nightshift.banking.tasks import SYNC_KEY, update_transactions_by_bank_account
from nightshift.books.runs import long_submitting
from nightshift.books.sync_ledger import end_syncing, long_syncing
from nightshift.filings.tasks import RUN_KEY, submit_approved_run
from nightshift.journal import SWEPT
from slackwater import JobState, minutes

EVERY = minutes(5)
STUCK_AFTER = minutes(2)
"""Of the run clock, which bodies run on: several leases' lives, so that a worker's death is found by others first."""


class Work(StrEnum):
    """What goes on for a key."""

    GOES_ON = "goes on"
    """A body runs, or a message or a row in the store will become one."""
    ENDED = "ended"
    """It was done; or it failed, and a dead letter is kept for a person; or it came too late."""
    GONE = "gone"
    """Nobody will ever do it."""


def judge_work(state: JobState | None, *, is_leased: bool, is_pending: bool) -> Work:
    """Decide what goes on for a key.

    Args:
        state: The key's; None for a key that nobody knows.
        is_leased: The lease under which its job runs is held.
        is_pending: It was announced not long ago.
    """
    if state is None:
        return Work.GONE
    if state.final:
        return Work.ENDED
    return Work.GOES_ON if (is_leased if state is JobState.RUNNING else is_pending) else Work.GONE


def work_on(name: str) -> Work:
    """Look what goes on for a key."""
    key = sw.store.runs.key(name)
    if key is None:
        return judge_work(None, is_leased=False, is_pending=False)
    lease = None if key.lease is None else sw.store.runs.lease(key.lease)
    announced_at = key.announced_at
    return judge_work(
        key.state,
        is_leased=lease is not None and lease.live and lease.job == key.job,
        is_pending=announced_at is not None and sw.clock.run() - announced_at < sw.settings.pending_for,
    )


@dataclass(frozen=True, kw_only=True)
class StuckSync:
    """An account that is marked as syncing, by a job that is at an end or gone.

    Attributes:
        account_id: Which account.
        job: The job that had marked it.
        work: What goes on for the account's sync.
    """

    account_id: int
    job: str
    work: Work


def find_stuck_syncs() -> Sequence[StuckSync]:
    """Return the accounts that are marked as syncing, and nobody is at their sync."""
    with connections.session() as session:
        marked = long_syncing(session, before=_begun_before())
    looked = (
        StuckSync(account_id=account, job=job, work=work_on(SYNC_KEY.format(account_id=account)))
        for account, job in marked
    )
    return [one for one in looked if one.work is not Work.GOES_ON]


@sw.sweeper(every=EVERY, find=find_stuck_syncs)
def recover_stuck_syncs(found: Sequence[StuckSync]) -> int:
    """Publish the sync again where nobody does it any more, then take the mark off; return how many.

    A sync that has failed, or came too late, is not published again: the next fan-out is there for it.
    """
    for one in found:
        if one.work is Work.GONE:
            update_transactions_by_bank_account.delay(one.account_id)
        with connections.session() as session, session.begin():
            end_syncing(session, one.account_id, job_id=one.job)
    journal.write(SWEPT, sweeper="recover_stuck_syncs", things=[f"account {one.account_id}" for one in found])
    return len(found)


def find_stuck_runs() -> Sequence[int]:
    """Return the runs whose submission was begun and that nobody submits."""
    with connections.session() as session:
        begun = long_submitting(session, before=_begun_before())
    return [run for run in begun if work_on(RUN_KEY.format(run_id=run)) is Work.GONE]


@sw.sweeper(every=EVERY, find=find_stuck_runs)
def requeue_stuck_runs(found: Sequence[int]) -> int:
    """Publish their submission again; return how many.

    Their key makes it harmless: where somebody submits after all, one of the two ends as a duplicate, and whoever
    submits asks the gateway first what became of the filing.
    """
    for run in found:
        submit_approved_run.delay(run)
    journal.write(SWEPT, sweeper="requeue_stuck_runs", things=[f"run {run}" for run in found])
    return len(found)


def _begun_before() -> datetime:
    # The books are written on the calendar clock, which may be compressed.
    return sw.settings.tempo.calendar_at(sw.clock.run() - STUCK_AFTER)

"""What the night achieved, counted from the books."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from nightshift.books.models import Account, AgentRun, Attachment, Filing, RunState, Transaction


@dataclass(frozen=True, kw_only=True)
class MorningCounts:
    """Effects in the books since the night began; `..._left_count` is what still waits.

    Attributes:
        account_count: All accounts.
        synced_account_count: Accounts with a sync since then.
        refreshed_account_count: Accounts whose details and balance were refreshed since then.
        consent_needed_count: Accounts that need a new consent.
        new_transaction_count: Entries that syncs brought since then.
        read_attachment_count: Attachments read since then.
        unreadable_attachment_count: Attachments found unreadable since then.
        unread_attachments_left_count: Attachments that no job has read.
        submitted_run_count: Runs filed since then.
        filing_count: All filings; never more than one a run.
        failed_run_count: Runs that the gateway refused.
        approved_runs_left_count: Runs that are approved and not begun.
    """

    account_count: int
    synced_account_count: int
    refreshed_account_count: int
    consent_needed_count: int
    new_transaction_count: int
    read_attachment_count: int
    unreadable_attachment_count: int
    unread_attachments_left_count: int
    submitted_run_count: int
    filing_count: int
    failed_run_count: int
    approved_runs_left_count: int


def morning_counts(session: Session, since: datetime) -> MorningCounts:
    """Count the night's effects in one statement, so that all numbers are of one instant.

    Args:
        session: Open session.
        since: When the night began, on the clock that the jobs wrote with.
    """
    read = Attachment.read_at >= since
    wanted = {
        "account_count": select(func.count(Account.id)),
        "synced_account_count": select(func.count(Account.id)).where(Account.last_synced_at >= since),
        "refreshed_account_count": select(func.count(Account.id)).where(Account.refreshed_at >= since),
        "consent_needed_count": select(func.count(Account.id)).where(Account.needs_consent_since.is_not(None)),
        "new_transaction_count": select(func.count(Transaction.id)).where(
            Transaction.created_at >= since, Transaction.synced_by.is_not(None)
        ),
        "read_attachment_count": select(func.count(Attachment.id)).where(read, Attachment.read_error.is_(None)),
        "unreadable_attachment_count": select(func.count(Attachment.id)).where(
            read, Attachment.read_error.is_not(None)
        ),
        "unread_attachments_left_count": select(func.count(Attachment.id)).where(Attachment.read_at.is_(None)),
        "submitted_run_count": select(func.count(AgentRun.id)).where(AgentRun.submitted_at >= since),
        "filing_count": select(func.count(Filing.id)),
        "failed_run_count": select(func.count(AgentRun.id)).where(AgentRun.state == RunState.FAILED),
        "approved_runs_left_count": select(func.count(AgentRun.id)).where(AgentRun.state == RunState.APPROVED),
    }
    row = session.execute(select(*(query.scalar_subquery().label(name) for name, query in wanted.items()))).one()
    return MorningCounts(**row._mapping)

"""Consents in the books: under which session an account is read, and which accounts need a new one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from nightshift.books.models import Account


@dataclass(frozen=True, kw_only=True)
class ConnectedAccount:
    """What a consent is asked for: an account, as the aggregator and its owner's bank know it."""

    tenant_id: int
    aggregator_uid: UUID
    bank_name: str


def accounts_by_tenant(session: Session) -> tuple[tuple[ConnectedAccount, ...], ...]:
    """Return all accounts, tenant by tenant."""
    rows = session.execute(
        select(Account.tenant_id, Account.aggregator_uid, Account.bank_name).order_by(Account.tenant_id, Account.id)
    )
    accounts = [ConnectedAccount(tenant_id=row[0], aggregator_uid=row[1], bank_name=row[2]) for row in rows]
    return tuple(tuple(group) for _, group in groupby(accounts, key=lambda one: one.tenant_id))


def record_consent(session: Session, uids: Sequence[UUID], *, session_id: UUID, lasts_until: datetime) -> int:
    """Write down a consent that was given, in the caller's transaction; safe to repeat.

    Its accounts need no new one any more.

    Args:
        session: Open session; the caller commits.
        uids: The aggregator's ids of its accounts.
        session_id: The aggregator's session of it.
        lasts_until: When it ends by itself (aware).

    Returns:
        How many accounts of ours it is for.
    """
    given = session.execute(
        update(Account)
        .where(Account.aggregator_uid.in_(uids))
        .values(session_id=session_id, consent_valid_until=lasts_until, needs_consent_since=None, consent_refusal=None)
        .returning(Account.id)
    )
    return len(given.all())


def mark_consent_over(
    session: Session, account_id: int, *, session_id: UUID | None, refusal: str, at: datetime
) -> bool:
    """Write down that an account needs a new consent, in the caller's transaction; the first time counts.

    Args:
        session: Open session; the caller commits.
        account_id: Which account.
        session_id: The session that was refused. If the account has another one by now, nothing is marked: the
            customer was quicker than the refusal.
        refusal: The aggregator's word, as EXPIRED_SESSION.
        at: When it said so.

    Returns:
        True if this call marked it.
    """
    marked = session.scalar(
        update(Account)
        .where(
            Account.id == account_id,
            Account.session_id.is_not_distinct_from(session_id),
            Account.needs_consent_since.is_(None),
        )
        .values(needs_consent_since=at, consent_refusal=refusal)
        .returning(Account.id)
    )
    return marked is not None

"""Bank accounts, and what a sync brought: balances and booked entries."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from sqlalchemy import select, text, update
from sqlalchemy.orm import Session

from nightshift.books.errors import UnknownAccount
from nightshift.books.models import Account


@dataclass(frozen=True, kw_only=True)
class SyncTarget:
    """What a sync has to know of an account before it calls the bank."""

    account_id: int
    tenant_id: int
    aggregator_uid: UUID
    last_synced_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class BookedEntry:
    """One booked entry of a statement.

    Attributes:
        entry_reference: The bank's own id of the entry, unique in its account.
        booked_on: Booking date.
        value_on: Value date, where the bank gives one.
        amount: Signed; money going out is negative. At most two decimals.
        currency: ISO 4217 code.
        counterparty: Who paid or was paid, where known.
        remittance: The text of the entry ("Verwendungszweck").
    """

    entry_reference: str
    booked_on: date
    value_on: date | None
    amount: Decimal
    currency: str
    counterparty: str | None
    remittance: str


# One statement a batch, whatever its size: arrays are unnested into rows.
_INSERT_ENTRIES = text("""
    INSERT INTO nightshift.transactions
      (account_id, entry_reference, booked_on, value_on, amount, currency, counterparty, remittance,
       created_at, synced_by)
    SELECT :account_id, entry.*, :at, :job_id
      FROM unnest(CAST(:entry_reference AS text[]), CAST(:booked_on AS date[]), CAST(:value_on AS date[]),
                  CAST(:amount AS numeric[]), CAST(:currency AS text[]), CAST(:counterparty AS text[]),
                  CAST(:remittance AS text[])) AS entry
    ON CONFLICT (account_id, entry_reference) DO NOTHING
    RETURNING id
""")


def accounts_to_sync(session: Session, at: datetime) -> tuple[int, ...]:
    """Return the ids of accounts whose consent is valid at `at`, tenant by tenant, always in one order."""
    ids = select(Account.id).where(Account.consent_valid_until > at).order_by(Account.tenant_id, Account.id)
    return tuple(session.scalars(ids))


def sync_target(session: Session, account_id: int) -> SyncTarget:
    """Look an account up before its bank is called.

    Raises:
        UnknownAccount: there is none with this id.
    """
    account = session.get(Account, account_id)
    if account is None:
        raise UnknownAccount(account_id)
    return SyncTarget(
        account_id=account.id,
        tenant_id=account.tenant_id,
        aggregator_uid=account.aggregator_uid,
        last_synced_at=account.last_synced_at,
    )


def record_sync(
    session: Session,
    account_id: int,
    *,
    balance: Decimal,
    transactions: Sequence[BookedEntry],
    job_id: str,
    at: datetime,
) -> int:
    """Write down what a sync brought, in the caller's transaction; safe to repeat.

    Entries that the account has already are left as they are. The balance is kept where a later sync has
    written one; two syncs of one account wait for each other.

    Args:
        session: Open session; the caller commits.
        account_id: Which account.
        balance: Booked balance as of `at`.
        transactions: Entries in any order; repeated ones count once.
        job_id: The job that asked the bank.
        at: When the bank answered.

    Returns:
        How many entries were new.

    Raises:
        UnknownAccount: there is no such account.
    """
    _lock(session, account_id)
    session.execute(
        update(Account)
        .where(Account.id == account_id, (Account.last_synced_at.is_(None)) | (Account.last_synced_at <= at))
        .values(balance=balance, last_synced_at=at, last_synced_by=job_id)
    )
    if not transactions:
        return 0
    columns = {name: [getattr(entry, name) for entry in transactions] for name in _COLUMNS}
    inserted = session.execute(_INSERT_ENTRIES, columns | {"account_id": account_id, "at": at, "job_id": job_id})
    return len(inserted.all())


_COLUMNS = ("entry_reference", "booked_on", "value_on", "amount", "currency", "counterparty", "remittance")


def _lock(session: Session, account_id: int) -> None:
    locked = session.scalar(select(Account.id).where(Account.id == account_id).with_for_update())
    if locked is None:
        raise UnknownAccount(account_id)

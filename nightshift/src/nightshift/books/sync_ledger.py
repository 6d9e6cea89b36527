"""Bank accounts, and what their jobs brought: balances, details, booked and pending entries."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from sqlalchemy import ColumnElement, Numeric, case, delete, insert, literal, or_, select, text, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from nightshift.books.errors import UnknownAccount
from nightshift.books.models import Account, PendingTransaction


@dataclass(frozen=True, kw_only=True)
class SyncTarget:
    """What a sync has to know of an account before it calls the bank."""

    account_id: int
    tenant_id: int
    aggregator_uid: UUID
    last_synced_at: datetime | None
    session_id: UUID | None


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


@dataclass(frozen=True, kw_only=True)
class PendingEntry:
    """One entry that a bank has announced and not booked.

    Attributes:
        entry_reference: The bank's id of it for the time being: it gets another when it is booked. None for none.
        amount: Signed; money going out is negative. At most two decimals.
        currency: ISO 4217 code.
        counterparty: Who pays or is paid, where known.
        remittance: The text of the entry.
    """

    entry_reference: str | None
    amount: Decimal
    currency: str
    counterparty: str | None
    remittance: str


# One statement a batch, whatever its size: arrays are unnested into rows.
_UPSERT_ENTRIES = text("""
    INSERT INTO nightshift.transactions
      (account_id, entry_reference, booked_on, value_on, amount, currency, counterparty, remittance,
       created_at, synced_by)
    SELECT :account_id, entry.*, :at, :job_id
      FROM unnest(CAST(:entry_reference AS text[]), CAST(:booked_on AS date[]), CAST(:value_on AS date[]),
                  CAST(:amount AS numeric[]), CAST(:currency AS text[]), CAST(:counterparty AS text[]),
                  CAST(:remittance AS text[])) AS entry
    ON CONFLICT (account_id, entry_reference) DO UPDATE
      SET booked_on = excluded.booked_on, value_on = excluded.value_on, amount = excluded.amount,
          currency = excluded.currency, counterparty = excluded.counterparty, remittance = excluded.remittance
      WHERE :is_newest
        AND (transactions.booked_on, transactions.value_on, transactions.amount, transactions.currency,
             transactions.counterparty, transactions.remittance)
            IS DISTINCT FROM (excluded.booked_on, excluded.value_on, excluded.amount, excluded.currency,
                              excluded.counterparty, excluded.remittance)
    RETURNING xmax = 0 AS is_new
""")


def accounts_to_sync(session: Session, at: datetime) -> tuple[int, ...]:
    """Return the ids of accounts that need no new consent at `at`, tenant by tenant, always in one order."""
    ids = select(Account.id).where(Account.consent_valid_until > at, Account.needs_consent_since.is_(None))
    return tuple(session.scalars(ids.order_by(Account.tenant_id, Account.id)))


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
        session_id=account.session_id,
    )


def mark_syncing(session: Session, account_id: int, *, job_id: str, at: datetime) -> None:
    """Write down that a job is at an account's sync, in the caller's transaction; safe to repeat, the latest counts.

    Raises:
        UnknownAccount: there is no such account.
    """
    marked = update(Account).where(Account.id == account_id).values(syncing_since=at, syncing_by=job_id)
    if session.scalar(marked.returning(Account.id)) is None:
        raise UnknownAccount(account_id)


def end_syncing(session: Session, account_id: int, *, job_id: str) -> bool:
    """Take a job's mark off an account, in the caller's transaction; safe to repeat.

    Returns:
        True if it was there; False for none, or another job's.
    """
    ended = (
        update(Account)
        .where(Account.id == account_id, Account.syncing_by == job_id)
        .values(syncing_since=None, syncing_by=None)
    )
    return session.scalar(ended.returning(Account.id)) is not None


def long_syncing(session: Session, *, before: datetime) -> tuple[tuple[int, str], ...]:
    """Return accounts whose sync began before an instant and has not ended, each with the job that is at it."""
    marked = select(Account.id, Account.syncing_by).where(Account.syncing_since < before).order_by(Account.id)
    return tuple((row.id, row.syncing_by) for row in session.execute(marked))


def record_sync(  # noqa: PLR0913  # what a sync brought
    session: Session,
    account_id: int,
    *,
    balance: Decimal,
    transactions: Sequence[BookedEntry],
    pending: Sequence[PendingEntry] = (),
    job_id: str,
    at: datetime,
) -> int:
    """Write down what a sync brought, in the caller's transaction; safe to repeat.

    A booked entry is kept once, under the bank's id of it; where the bank has corrected it since, so is it here.
    Pending entries have no lasting id, so those of the account are replaced as a whole: one that was booked in the
    meantime is not there twice. Of two syncs the later one's answer counts, whichever is written last; two syncs
    of one account wait for each other. The job's mark of a sync under way is taken off.

    Args:
        session: Open session; the caller commits.
        account_id: Which account.
        balance: Booked balance as of `at`.
        transactions: Booked entries in any order; repeated ones count once.
        pending: All entries that are pending now.
        job_id: The job that asked the bank.
        at: When the bank answered.

    Returns:
        How many booked entries were new.

    Raises:
        UnknownAccount: there is no such account.
    """
    _lock(session, account_id)
    end_syncing(session, account_id, job_id=job_id)
    is_newest = _write_balance(session, account_id, balance=balance, job_id=job_id, at=at)
    if is_newest:
        _replace_pending(session, account_id, pending, job_id=job_id, at=at)
    once = {entry.entry_reference: entry for entry in transactions}
    if not once:
        return 0
    columns = {name: [getattr(entry, name) for entry in once.values()] for name in _COLUMNS}
    facts = {"account_id": account_id, "at": at, "job_id": job_id, "is_newest": is_newest}
    return sum(row.is_new for row in session.execute(_UPSERT_ENTRIES, columns | facts))


def record_refresh(  # noqa: PLR0913  # what a refresh brought
    session: Session,
    account_id: int,
    *,
    holder: str | None,
    product: str | None,
    balance: Decimal,
    job_id: str,
    at: datetime,
) -> bool:
    """Write down what a bank says of an account itself, in the caller's transaction; safe to repeat.

    Args:
        session: Open session; the caller commits.
        account_id: Which account.
        holder: Whose it is, as the bank says.
        product: What the bank calls this kind of account.
        balance: Booked balance as of `at`.
        job_id: The job that asked the bank.
        at: When the bank answered.

    Returns:
        True if it was written, False if a later answer is there already.

    Raises:
        UnknownAccount: there is no such account.
    """
    _lock(session, account_id)
    newer = case((_not_after(Account.last_synced_at, at), literal(balance, Numeric(14, 2))), else_=Account.balance)
    written = session.scalar(
        update(Account)
        .where(Account.id == account_id, _not_after(Account.refreshed_at, at))
        .values(holder=holder, product=product, balance=newer, refreshed_at=at, refreshed_by=job_id)
        .returning(Account.id)
    )
    return written is not None


_COLUMNS = ("entry_reference", "booked_on", "value_on", "amount", "currency", "counterparty", "remittance")


def _not_after(column: InstrumentedAttribute[datetime | None], at: datetime) -> ColumnElement[bool]:
    return or_(column.is_(None), column <= at)


def _write_balance(session: Session, account_id: int, *, balance: Decimal, job_id: str, at: datetime) -> bool:
    newer = case((_not_after(Account.refreshed_at, at), literal(balance, Numeric(14, 2))), else_=Account.balance)
    written = session.scalar(
        update(Account)
        .where(Account.id == account_id, _not_after(Account.last_synced_at, at))
        .values(balance=newer, last_synced_at=at, last_synced_by=job_id)
        .returning(Account.id)
    )
    return written is not None


def _replace_pending(
    session: Session, account_id: int, pending: Sequence[PendingEntry], *, job_id: str, at: datetime
) -> None:
    session.execute(delete(PendingTransaction).where(PendingTransaction.account_id == account_id))
    rows = [{**asdict(one), "account_id": account_id, "told_at": at, "told_by": job_id} for one in pending]
    if rows:
        session.execute(insert(PendingTransaction), rows)


def _lock(session: Session, account_id: int) -> None:
    locked = session.scalar(select(Account.id).where(Account.id == account_id).with_for_update())
    if locked is None:
        raise UnknownAccount(account_id)

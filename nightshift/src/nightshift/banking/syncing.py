"""An account's sync and its refresh: ask the bank, then write down what it said. Plain functions, safe to repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Protocol
from uuid import UUID
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from nightshift.banking.client import AccountDetails, Balance, BankTransaction
from nightshift.books.consents import mark_consent_over
from nightshift.books.sync_ledger import (
    BookedEntry,
    PendingEntry,
    SyncTarget,
    end_syncing,
    mark_syncing,
    record_refresh,
    record_sync,
    sync_target,
)
from nightshift.peers import ConsentEnded, PeerAnswerInvalid
from nightshift.schedule import ZONE

LOOK_BACK = timedelta(days=90)
OVERLAP = timedelta(days=3)
"""How far a sync looks back behind the last one: banks book late."""
BOOKED, PENDING = "BOOK", "PDNG"


class Aggregator(Protocol):
    """The bank aggregator; `nightshift.banking.client.AggregatorClient` is one."""

    def details(self, account_id: UUID, *, job_id: str) -> AccountDetails:
        """Ask what the bank says of an account itself."""

    def balances(self, account_id: UUID, *, job_id: str) -> tuple[Balance, ...]:
        """Ask for the balances of an account."""

    def transactions(self, account_id: UUID, date_from: date, *, job_id: str) -> tuple[BankTransaction, ...]:
        """Ask for all entries since a day."""


@dataclass(frozen=True, kw_only=True)
class Teller:
    """Whom an account's jobs talk to.

    Attributes:
        open_session: Opens a session on the books.
        aggregator: The bank aggregator.
        now: Clock of the books (aware).
        fenced: Keeps a transaction from being committed by a job that has lost its lease; by default there is none.
    """

    open_session: Callable[[], Session]
    aggregator: Aggregator
    now: Callable[[], datetime]
    fenced: Callable[[Session], AbstractContextManager[None]] = lambda _: nullcontext()

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Open a transaction that is committed at the end of the block, if the fence still stands then."""
        with self.open_session() as session, session.begin(), self.fenced(session):
            yield session


def sync_account(teller: Teller, account_id: int, *, job_id: str) -> int:
    """Bring an account's balance and entries up to date; safe to run twice, and at the same time.

    That it is under way is written down first, for whoever looks for syncs that got stuck. Both calls read, a booked
    entry is kept once under the bank's id, and pending entries are replaced as a whole.
    No database connection is held while the bank is waited for.

    Returns:
        How many booked entries were new.

    Raises:
        ConsentEnded: The account is marked as needing a new consent.
        UnknownAccount: There is no such account.
        PeerError: The aggregator was no help; nothing is written.
    """
    with teller.writing() as session:
        mark_syncing(session, account_id, job_id=job_id, at=teller.now())
    with _asking(teller, account_id, job_id=job_id) as target:
        today = teller.now().astimezone(ZoneInfo(ZONE)).date()
        since = min((target.last_synced_at - OVERLAP).date() if target.last_synced_at else today - LOOK_BACK, today)
        balances = teller.aggregator.balances(target.aggregator_uid, job_id=job_id)
        entries = teller.aggregator.transactions(target.aggregator_uid, since, job_id=job_id)
    booked = [_entry(one) for one in entries if one.status == BOOKED and one.entry_reference]
    pending = [_pending(one) for one in entries if one.status == PENDING]
    balance = _booked(balances).amount
    with teller.writing() as session:
        return record_sync(
            session,
            account_id,
            balance=balance,
            transactions=booked,
            pending=pending,
            job_id=job_id,
            at=teller.now(),
        )


def refresh_account(teller: Teller, account_id: int, *, job_id: str) -> bool:
    """Bring an account's details and balance up to date; safe to run twice, and at the same time.

    Returns:
        True if this call wrote them, False if a later one had.

    Raises:
        ConsentEnded, UnknownAccount, PeerError: As for `sync_account`.
    """
    with _asking(teller, account_id, job_id=job_id) as target:
        details = teller.aggregator.details(target.aggregator_uid, job_id=job_id)
        balances = teller.aggregator.balances(target.aggregator_uid, job_id=job_id)
    with teller.writing() as session:
        return record_refresh(
            session,
            account_id,
            holder=details.holder,
            product=details.product,
            balance=_booked(balances).amount,
            job_id=job_id,
            at=teller.now(),
        )


@contextmanager
def _asking(teller: Teller, account_id: int, *, job_id: str) -> Iterator[SyncTarget]:
    """Look an account up, and mark it in the books if its consent turns out to be over."""
    with teller.open_session() as session:
        target = sync_target(session, account_id)
    try:
        yield target
    except ConsentEnded as ended:
        with teller.writing() as session:
            end_syncing(session, account_id, job_id=job_id)
            mark_consent_over(session, account_id, session_id=target.session_id, refusal=ended.code, at=teller.now())
        raise


def _booked(balances: tuple[Balance, ...]) -> Balance:
    for kind in ("CLBD", "ITBD"):
        for one in balances:
            if one.kind == kind:
                return one
    if balances:
        return balances[0]
    raise PeerAnswerInvalid("no balance came back", peer="aggregator", remedy="try the account again later")


def _entry(one: BankTransaction) -> BookedEntry:
    day = one.booking_date or one.value_date
    if day is None or one.entry_reference is None:
        raise PeerAnswerInvalid("a booked entry has no day", peer="aggregator", remedy="try the account again later")
    return BookedEntry(
        entry_reference=one.entry_reference,
        booked_on=day,
        value_on=one.value_date,
        amount=one.amount,
        currency=one.currency,
        counterparty=one.counterparty,
        remittance=" ".join(one.purpose),
    )


def _pending(one: BankTransaction) -> PendingEntry:
    return PendingEntry(
        entry_reference=one.entry_reference,
        amount=one.amount,
        currency=one.currency,
        counterparty=one.counterparty,
        remittance=" ".join(one.purpose),
    )

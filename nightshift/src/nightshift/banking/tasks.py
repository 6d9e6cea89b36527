"""The bank sync: one job an account, each a patient wait for the aggregator."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from nightshift.app import app, connections, sw
from nightshift.banking.client import Balance, BankTransaction
from nightshift.books.sync_ledger import BookedEntry, accounts_to_sync, record_sync, sync_target
from nightshift.peers import PeerAnswerInvalid
from nightshift.schedule import ZONE

LOOK_BACK = timedelta(days=90)
BOOKED = "BOOK"


@app.task(name="update_all_transactions", lane="transaction_sync")
def update_all_transactions() -> int:
    """Fan out one sync for each account whose consent is valid; return how many were published."""
    with connections.session() as session:
        accounts = accounts_to_sync(session, sw.clock.calendar())
    return len(sw.fan_out(update_transactions_by_bank_account, [(account,) for account in accounts]).published)


@app.task(name="update_transactions_by_bank_account", lane="transaction_sync", bind=True)
def update_transactions_by_bank_account(self: Any, account_id: int) -> int:
    """Ask the bank for an account's balance and entries, and write them into the books; return how many were new.

    Safe to run twice: both calls read, and an entry is kept once. No database connection is held while the bank is
    waited for.
    """
    job = str(self.request.id)
    with connections.session() as session:
        target = sync_target(session, account_id)
    today = sw.clock.calendar().astimezone(ZoneInfo(ZONE)).date()
    since = (target.last_synced_at or _midnight(today) - LOOK_BACK).date() - timedelta(days=3)
    balances = connections.aggregator.balances(target.aggregator_uid, job_id=job)
    entries = connections.aggregator.transactions(target.aggregator_uid, min(since, today), job_id=job)
    with connections.session() as session, session.begin():
        return record_sync(
            session,
            account_id,
            balance=_booked(balances).amount,
            transactions=[_entry(one) for one in entries if one.status == BOOKED and one.entry_reference],
            job_id=job,
            at=sw.clock.calendar(),
        )


def _midnight(day: Any) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(ZONE))


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

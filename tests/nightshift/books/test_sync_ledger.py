from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from nightshift.books.errors import UnknownAccount
from nightshift.books.models import Account, PendingTransaction, Transaction
from nightshift.books.sync_ledger import (
    BookedEntry,
    PendingEntry,
    accounts_to_sync,
    record_refresh,
    record_sync,
    sync_target,
)

ENTRY = BookedEntry(
    entry_reference="A-1",
    booked_on=date(2026, 11, 29),
    value_on=None,
    amount=Decimal("-12.50"),
    currency="EUR",
    counterparty="Bäckerei Süß",
    remittance="Brötchen, Straße 7",
)


def entries(count: int) -> list[BookedEntry]:
    return [replace(ENTRY, entry_reference=f"A-{number}") for number in range(count)]


def sync(session: Session, at: datetime, *, batch: list[BookedEntry], balance: str = "10.00") -> int:
    return record_sync(session, 1, balance=Decimal(balance), transactions=batch, job_id="job-1", at=at)


def test_accounts_come_tenant_by_tenant_and_without_a_lapsed_consent(session: Session, now: datetime) -> None:
    assert accounts_to_sync(session, now - timedelta(days=1)) == (2, 1, 3)
    assert accounts_to_sync(session, now + timedelta(hours=1)) == (2, 3)


def test_a_target_names_what_the_bank_is_asked_for(session: Session) -> None:
    target = sync_target(session, 3)
    assert (target.tenant_id, target.aggregator_uid, target.last_synced_at) == (2, UUID(int=3), None)
    with pytest.raises(UnknownAccount, match="no account 77"):
        sync_target(session, 77)


def test_a_sync_is_written_whole(session: Session, now: datetime) -> None:
    assert sync(session, now, batch=[ENTRY]) == 1
    account, written = (
        session.scalars(select(Account).where(Account.id == 1)).one(),
        session.scalars(select(Transaction)).one(),
    )
    assert (account.balance, account.last_synced_at, account.last_synced_by) == (Decimal("10.00"), now, "job-1")
    assert (written.counterparty, written.remittance, written.amount) == (
        "Bäckerei Süß",
        "Brötchen, Straße 7",
        Decimal("-12.50"),
    )
    assert (written.value_on, written.created_at, written.synced_by) == (None, now, "job-1")


def test_a_repeated_sync_adds_nothing_and_tells_so(session: Session, now: datetime) -> None:
    assert sync(session, now, batch=entries(500)) == 500
    assert sync(session, now, batch=entries(500)) == 0
    assert sync(session, now, batch=[*entries(501), *entries(501)]) == 1


def test_the_same_reference_in_another_account_is_another_entry(session: Session, now: datetime) -> None:
    sync(session, now, batch=[ENTRY])
    assert record_sync(session, 2, balance=Decimal(1), transactions=[ENTRY], job_id="job-2", at=now) == 1


def test_an_older_answer_keeps_the_newer_balance_and_still_brings_its_entries(session: Session, now: datetime) -> None:
    sync(session, now, batch=[], balance="20.00")
    assert sync(session, now - timedelta(minutes=5), batch=[ENTRY], balance="10.00") == 1
    account = sync_target(session, 1)
    assert account.last_synced_at == now
    assert session.scalar(select(Account.balance).where(Account.id == 1)) == Decimal("20.00")


def test_two_syncs_of_one_account_at_once_write_each_entry_once(
    session: Session, engine: Engine, now: datetime
) -> None:
    def one(_: int) -> int:
        with Session(engine) as own, own.begin():
            return sync(own, now, batch=entries(200))

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(one, range(4))) == [0, 0, 0, 200]
    assert len(session.scalars(select(Transaction.id)).all()) == 200


def pending(*references: str) -> list[PendingEntry]:
    return [
        PendingEntry(
            entry_reference=reference,
            amount=Decimal("-3.00"),
            currency="EUR",
            counterparty=None,
            remittance="vorgemerkt",
        )
        for reference in references
    ]


def told_pending(session: Session) -> list[str | None]:
    return list(session.scalars(select(PendingTransaction.entry_reference).order_by(PendingTransaction.id)))


def sync_pending(session: Session, at: datetime, *references: str, account_id: int = 1) -> None:
    entries = pending(*references)
    record_sync(session, account_id, balance=Decimal(1), transactions=[ENTRY], pending=entries, job_id="job-1", at=at)


def test_each_sync_replaces_all_that_is_pending_in_its_account(session: Session, now: datetime) -> None:
    sync_pending(session, now, "p1", "p2")
    sync_pending(session, now, "p1", account_id=2)
    assert told_pending(session) == ["p1", "p2", "p1"]
    sync_pending(session, now + timedelta(minutes=1), "p3")
    assert told_pending(session) == ["p1", "p3"]
    sync_pending(session, now, "p1", "p2")  # an older answer, written last
    assert told_pending(session) == ["p1", "p3"]
    sync_pending(session, now + timedelta(minutes=2))
    assert told_pending(session) == ["p1"]


def test_a_booked_entry_that_the_bank_corrected_is_corrected_and_not_new(session: Session, now: datetime) -> None:
    sync(session, now, batch=[ENTRY])
    corrected = replace(ENTRY, remittance="Brötchen, Straße 9", value_on=date(2026, 11, 30))
    assert sync(session, now + timedelta(minutes=1), batch=[corrected]) == 0
    [written] = session.execute(select(Transaction.remittance, Transaction.value_on, Transaction.synced_by)).all()
    assert tuple(written) == ("Brötchen, Straße 9", date(2026, 11, 30), "job-1")
    assert sync(session, now, batch=[ENTRY]) == 0  # an older answer, written last
    assert session.scalar(select(Transaction.remittance)) == "Brötchen, Straße 9"


def refresh(session: Session, at: datetime, *, balance: str, holder: str = "Café Süß") -> bool:
    return record_refresh(
        session, 1, holder=holder, product="Geschäftskonto", balance=Decimal(balance), job_id="refresh", at=at
    )


def test_the_later_of_a_sync_and_a_refresh_has_the_balance_whichever_is_written_last(
    session: Session, now: datetime
) -> None:
    minute = timedelta(minutes=1)
    balance = select(Account.balance).where(Account.id == 1)
    assert refresh(session, now + minute, balance="2.00")
    sync(session, now, batch=[ENTRY], balance="1.00")
    assert session.scalar(balance) == Decimal("2.00")
    assert sync_target(session, 1).last_synced_at == now
    sync(session, now + 3 * minute, batch=[], balance="3.00")
    assert refresh(session, now + 2 * minute, balance="2.50")
    assert session.scalar(balance) == Decimal("3.00")


def test_an_older_refresh_changes_nothing(session: Session, now: datetime) -> None:
    assert refresh(session, now, balance="2.00")
    assert not refresh(session, now - timedelta(minutes=1), balance="1.00", holder="before")
    account = session.scalars(select(Account).where(Account.id == 1)).one()
    assert (account.holder, account.balance, account.refreshed_at) == ("Café Süß", Decimal("2.00"), now)
    with pytest.raises(UnknownAccount):
        record_refresh(session, 77, holder=None, product=None, balance=Decimal(1), job_id="refresh", at=now)


def test_a_sync_of_an_unknown_account_is_refused(session: Session, now: datetime) -> None:
    with pytest.raises(UnknownAccount):
        record_sync(session, 77, balance=Decimal(1), transactions=[], job_id="job-1", at=now)

"""An account's sync and refresh against a real bank: twice, at once, and with a consent that is over."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from nightshift.banking.client import AccountDetails, AggregatorClient, Balance, BankTransaction
from nightshift.banking.syncing import Aggregator, Teller, refresh_account, sync_account
from nightshift.books.consents import record_consent
from nightshift.books.models import Account, PendingTransaction, Transaction
from nightshift.books.sync_ledger import accounts_to_sync, long_syncing
from nightshift.peers import ConsentEnded, PeerUnavailable, RetryRule
from nightshift.world.testing import TOKENS, running_world, write_faults
from slackwater.errors import StaleFence

DAY = {"--today": "2026-11-30"}


class OpenPacer:
    def wait(self) -> None:
        return


@pytest.fixture
def teller(engine: Engine, session: Session, now: datetime) -> Callable[[Aggregator], Teller]:
    return lambda aggregator: Teller(open_session=lambda: Session(engine), aggregator=aggregator, now=lambda: now)


@contextmanager
def bank(tmp_path: Path, *rules: dict[str, Any]) -> Iterator[AggregatorClient]:
    rule = RetryRule(timeout=timedelta(seconds=30), backoffs=())
    with (
        running_world(tmp_path / "world.sqlite", {**write_faults(tmp_path, *rules), **DAY}) as world,
        AggregatorClient(world.url, TOKENS, pacer=OpenPacer(), rule=rule) as client,
    ):
        yield client


def booked(engine: Engine, account_id: int = 1) -> set[str]:
    with Session(engine) as session:
        rows = session.scalars(select(Transaction.entry_reference).where(Transaction.account_id == account_id))
        return set(rows)


def pending(engine: Engine, account_id: int = 1) -> list[str | None]:
    with Session(engine) as session:
        rows = select(PendingTransaction.entry_reference).where(PendingTransaction.account_id == account_id)
        return list(session.scalars(rows.order_by(PendingTransaction.entry_reference)))


def account(engine: Engine, account_id: int = 1) -> Account:
    with Session(engine) as session:
        return session.get_one(Account, account_id)


def test_a_first_sync_brings_months_over_several_pages_and_a_second_adds_what_is_new(
    tmp_path: Path, engine: Engine, teller: Callable[[Aggregator], Teller]
) -> None:
    with bank(tmp_path) as client:
        mine = teller(client)
        new = sync_account(mine, 1, job_id="job-1")
        first = booked(engine)
        assert len(first) == new > 20
        later = sync_account(mine, 1, job_id="job-2")
        assert first <= booked(engine)
        assert len(booked(engine)) == new + later
    assert (account(engine).balance, account(engine).last_synced_by) == (account(engine).balance, "job-2")
    assert account(engine).balance is not None


def test_a_sync_that_runs_twice_at_once_writes_each_entry_once(
    tmp_path: Path, engine: Engine, teller: Callable[[Aggregator], Teller]
) -> None:
    with bank(tmp_path) as client, ThreadPoolExecutor(4) as threads:
        mine = teller(client)
        new = list(threads.map(lambda number: sync_account(mine, 2, job_id=f"job-{number}"), range(4)))
    with Session(engine) as session:
        written = session.scalar(select(func.count(Transaction.id)).where(Transaction.account_id == 2))
    assert written == len(booked(engine, 2)) == sum(new)


def test_an_entry_that_was_pending_and_is_booked_is_there_once(
    tmp_path: Path, engine: Engine, teller: Callable[[Aggregator], Teller]
) -> None:
    """The world books today's entries from one ask to the next; each gets another reference then."""
    with bank(tmp_path) as client:
        mine = teller(client)
        seen: list[tuple[int, int]] = []
        for number in range(8):
            sync_account(mine, 1, job_id=f"job-{number}")
            sync_account(mine, 2, job_id=f"job-{number}")
            seen.append((len(pending(engine)) + len(pending(engine, 2)), len(booked(engine)) + len(booked(engine, 2))))
    assert seen[0][0] > 0
    assert seen[-1][0] == 0
    assert {waiting + done for waiting, done in seen} == {sum(seen[0])}
    assert not any(reference.startswith("PDNG-") for reference in booked(engine) | booked(engine, 2))


def test_a_sync_that_fails_in_the_middle_writes_nothing_and_is_made_good_by_the_next(
    tmp_path: Path, engine: Engine, teller: Callable[[Aggregator], Teller]
) -> None:
    with bank(tmp_path, {"fault": "truncated", "kinds": ["transactions"], "asks": [0]}) as client:
        with pytest.raises(PeerUnavailable):
            sync_account(teller(client), 1, job_id="job-1")
        assert (booked(engine), account(engine).last_synced_at) == (set(), None)
        assert sync_account(teller(client), 1, job_id="job-2") == len(booked(engine)) > 0


def test_a_sync_that_has_lost_its_lease_meanwhile_writes_nothing(
    tmp_path: Path, engine: Engine, teller: Callable[[Aggregator], Teller]
) -> None:
    fences = iter(range(1, 9))

    @contextmanager
    def fenced(_: Session) -> Iterator[None]:
        yield
        if next(fences) > 1:
            raise StaleFence("account:1", 1)

    with bank(tmp_path) as client, pytest.raises(StaleFence):
        sync_account(replace(teller(client), fenced=fenced), 1, job_id="job-1")
    assert (booked(engine), pending(engine), account(engine).last_synced_at) == (set(), [], None)
    assert account(engine).syncing_by == "job-1", "it had the lease when it began"


def test_an_account_is_marked_while_its_sync_is_under_way_and_not_afterwards(
    tmp_path: Path, engine: Engine, teller: Callable[[Aggregator], Teller], now: datetime
) -> None:
    def under_way(session: Session) -> tuple[tuple[int, str], ...]:
        return long_syncing(session, before=now + timedelta(seconds=1))

    with bank(tmp_path, {"fault": "truncated", "kinds": ["balances"], "asks": [0]}) as client:
        with pytest.raises(PeerUnavailable):
            sync_account(teller(client), 1, job_id="job-1")
        with Session(engine) as session:
            assert under_way(session) == ((1, "job-1"),)
            assert long_syncing(session, before=now) == ()
        sync_account(teller(client), 1, job_id="job-1")
        with Session(engine) as session:
            assert under_way(session) == ()


def test_a_refresh_brings_details_and_balance_and_may_run_twice(
    tmp_path: Path, engine: Engine, teller: Callable[[Aggregator], Teller], now: datetime
) -> None:
    with bank(tmp_path) as client:
        assert refresh_account(teller(client), 1, job_id="job-1")
        first = account(engine)
        assert refresh_account(teller(client), 1, job_id="job-2")
    second = account(engine)
    assert (first.product, first.refreshed_at, first.refreshed_by) == ("Geschäftskonto", now, "job-1")
    assert first.holder
    assert first.balance is not None
    assert (second.holder, second.product, second.balance) == (first.holder, first.product, first.balance)
    assert second.last_synced_at is None  # no entry was asked for


@pytest.mark.parametrize("act", [sync_account, refresh_account])
def test_an_account_whose_consent_is_over_is_marked_and_left_out_until_there_is_a_new_one(
    tmp_path: Path,
    engine: Engine,
    teller: Callable[[Aggregator], Teller],
    now: datetime,
    act: Callable[..., object],
) -> None:
    with bank(tmp_path, {"fault": "consent_ended", "subjects": [str(UUID(int=2))]}) as client:
        act(teller(client), 3, job_id="job-3")
        with pytest.raises(ConsentEnded, match=str(UUID(int=2))):
            act(teller(client), 2, job_id="job-2")
    marked = account(engine, 2)
    assert (marked.needs_consent_since, marked.consent_refusal) == (now, "REVOKED_SESSION")
    assert account(engine, 3).needs_consent_since is None
    with Session(engine) as session, session.begin():
        assert accounts_to_sync(session, now) == (3,)
        renewed = record_consent(session, [UUID(int=2)], session_id=UUID(int=9), lasts_until=now + timedelta(days=90))
        assert renewed == 1
    with Session(engine) as session:
        assert accounts_to_sync(session, now) == (2, 3)
    assert account(engine, 2).consent_refusal is None


def test_a_refusal_of_an_old_session_does_not_mark_an_account_that_has_a_new_one(
    engine: Engine, teller: Callable[[Aggregator], Teller], now: datetime
) -> None:
    class RenewedMeanwhile:
        """A bank that refuses the old session while the customer gives a new consent."""

        def balances(self, account_id: UUID, *, job_id: str) -> tuple[Balance, ...]:
            with Session(engine) as session, session.begin():
                record_consent(session, [account_id], session_id=UUID(int=9), lasts_until=now + timedelta(days=9))
            raise ConsentEnded(peer="aggregator", account=str(account_id), code="EXPIRED_SESSION", status=401)

        def details(self, account_id: UUID, *, job_id: str) -> AccountDetails:
            raise AssertionError("not asked for by a sync")

        def transactions(self, account_id: UUID, date_from: date, *, job_id: str) -> tuple[BankTransaction, ...]:
            raise AssertionError("not asked for after a refusal")

    with pytest.raises(ConsentEnded):
        sync_account(teller(RenewedMeanwhile()), 2, job_id="job")
    assert account(engine, 2).needs_consent_since is None

"""Connecting the customers' accounts: one consent a customer, and what it opens."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from nightshift.banking.client import AggregatorClient
from nightshift.books.consents import accounts_by_tenant, mark_consent_over
from nightshift.books.models import Account
from nightshift.connecting import connect_accounts
from nightshift.errors import NightError
from nightshift.peers import PeerRejected
from nightshift.world.limiter import RateLimit
from nightshift.world.testing import CREDENTIALS, TOKENS, running_world
from nightshift.world_process import World


class OpenPacer:
    def wait(self) -> None:
        return


def world_at(url: str, tmp_path: Path) -> World:
    credentials = tmp_path / "application.json"
    CREDENTIALS.write(credentials)
    limit = RateLimit(calls_per_second=12, burst=6)
    return World(url=url, credentials=credentials, books=tmp_path / "world.sqlite", rate_limit=limit)


def test_accounts_come_tenant_by_tenant(session: Session) -> None:
    told = [(one.tenant_id, one.aggregator_uid.int) for group in accounts_by_tenant(session) for one in group]
    assert told == [(1, 2), (2, 1), (2, 3)]
    assert [len(group) for group in accounts_by_tenant(session)] == [1, 2]


def test_every_account_is_opened_by_the_consent_of_its_customer(
    tmp_path: Path, engine: Engine, session: Session, now: datetime
) -> None:
    mark_consent_over(session, 3, session_id=None, refusal="EXPIRED_SESSION", at=now)
    session.commit()
    with running_world(tmp_path / "world.sqlite", {"--consents-required": ""}) as running:
        assert connect_accounts(engine, world_at(running.url, tmp_path)) == 2
        with AggregatorClient(running.url, TOKENS, pacer=OpenPacer()) as client:
            for number in (1, 2, 3):
                assert client.balances(UUID(int=number), job_id="job")
            with pytest.raises(PeerRejected, match="ACCOUNT_DOES_NOT_EXIST"):
                client.balances(UUID(int=4), job_id="job")
    session.expire_all()
    accounts = session.scalars(select(Account).order_by(Account.id)).all()
    assert [one.session_id for one in accounts] != [None] * 3
    assert accounts[0].session_id == accounts[2].session_id != accounts[1].session_id
    assert all(one.needs_consent_since is None for one in accounts)
    assert all(one.consent_valid_until > datetime.now(UTC) + timedelta(days=80) for one in accounts)


def test_an_aggregator_that_is_not_there_is_told_in_one_line(tmp_path: Path, engine: Engine, session: Session) -> None:
    with pytest.raises(NightError, match="the accounts cannot be connected: aggregator: no answer"):
        connect_accounts(engine, world_at("http://127.0.0.1:1", tmp_path))

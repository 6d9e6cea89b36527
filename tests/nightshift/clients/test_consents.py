"""The client of sessions: from the question to the session, and back."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID, uuid4

import httpx2
import pytest

from nightshift.banking.client import AggregatorClient
from nightshift.banking.consents import ConsentClient, agree, browser
from nightshift.peers import ConsentEnded, PeerAnswerInvalid, PeerRejected, PeerUnavailable, RetryRule
from nightshift.world.testing import TOKENS, RunningWorld

BANK = "Hansebank Lübeck"


class OpenPacer:
    def wait(self) -> None:
        return


@pytest.fixture
def consents(world: RunningWorld) -> Iterator[ConsentClient]:
    with ConsentClient(world.url, TOKENS) as client:
        yield client


@pytest.fixture
def opener() -> Iterator[httpx2.Client]:
    with browser() as client:
        yield client


def in_a_day() -> dt.datetime:
    return dt.datetime.now(dt.UTC) + dt.timedelta(days=1)


def test_a_consent_becomes_a_session_of_the_accounts_that_were_named(
    consents: ConsentClient, opener: httpx2.Client
) -> None:
    accounts, until = (uuid4(), uuid4()), in_a_day()
    asked = consents.ask_for(accounts, bank=BANK, valid_until=until, job_id="job")
    session = consents.authorize(agree(asked, opener), job_id="job")
    assert (session.accounts, session.valid_until, session.status) == (accounts, until, "AUTHORIZED")
    assert consents.session(session.session_id, job_id="job") == session


def test_a_session_that_was_closed_ends_the_calls_for_its_accounts(
    consents: ConsentClient, opener: httpx2.Client, world: RunningWorld
) -> None:
    account = uuid4()
    asked = consents.ask_for([account], bank=BANK, valid_until=in_a_day(), job_id="job")
    session = consents.authorize(agree(asked, opener), job_id="job")
    with AggregatorClient(world.url, TOKENS, pacer=OpenPacer()) as client:
        assert client.balances(account, job_id="job")
        consents.close_session(session.session_id, job_id="job")
        with pytest.raises(ConsentEnded, match=f"account {account} is over \\(CLOSED_SESSION\\); ask the customer"):
            client.transactions(account, dt.date(2026, 11, 1), job_id="job")
    assert consents.session(session.session_id, job_id="job").status == "CLOSED"


def test_a_code_that_is_not_known_is_rejected(consents: ConsentClient) -> None:
    with pytest.raises(PeerRejected, match="WRONG_AUTHORIZATION_CODE"):
        consents.authorize("guessed", job_id="job")
    with pytest.raises(PeerRejected, match="SESSION_DOES_NOT_EXIST"):
        consents.session(UUID(int=1), job_id="job")


def test_a_page_that_brings_back_anothers_state_is_not_believed(consents: ConsentClient, opener: httpx2.Client) -> None:
    asked = consents.ask_for([uuid4()], bank=BANK, valid_until=in_a_day(), job_id="job")
    with pytest.raises(PeerAnswerInvalid, match="brings no code back"):
        agree(replace(asked, state="another"), opener)


def test_nobody_there_is_unavailable(closed_port: int) -> None:
    rule = RetryRule(timeout=dt.timedelta(seconds=5))
    with (
        ConsentClient(f"http://127.0.0.1:{closed_port}", TOKENS, rule=rule) as client,
        pytest.raises(PeerUnavailable, match="not asked again"),
    ):
        client.ask_for([uuid4()], bank=BANK, valid_until=in_a_day(), job_id="job")

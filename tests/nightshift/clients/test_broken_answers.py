"""The clients against a world whose answers hang, break off, get lost, or name a wait."""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from nightshift.banking.client import LISTING_LIMIT, AggregatorClient
from nightshift.filings.client import FilingClient
from nightshift.peers import ConsentEnded, OutcomeUnknown, PeerAnswerInvalid, PeerRejected, PeerUnavailable, RetryRule
from nightshift.world.books import read_calls, read_filings
from nightshift.world.kinds import Fault, Outcome
from nightshift.world.testing import FILING_TOKENS, TOKENS, RunningWorld, running_world, write_faults

ACCOUNT = UUID(int=6)
SINCE = dt.date(2026, 10, 1)
BODY = {"form": "UStVA", "amount": "1234.56"}
HURRIED = RetryRule(timeout=dt.timedelta(seconds=0.5), backoffs=(dt.timedelta(0),))


class OpenPacer:
    def wait(self) -> None:
        return


@contextmanager
def bank(
    tmp_path: Path, *rules: dict[str, Any], rule: RetryRule = HURRIED, **options: str
) -> Iterator[tuple[AggregatorClient, RunningWorld, list[float]]]:
    waits: list[float] = []
    told = {f"--{name.replace('_', '-')}": value for name, value in options.items()}
    with (
        running_world(tmp_path / "books.sqlite", {**write_faults(tmp_path, *rules), **told}) as world,
        AggregatorClient(world.url, TOKENS, pacer=OpenPacer(), rule=rule, sleep=waits.append) as client,
    ):
        yield client, world, waits


@contextmanager
def gateway(tmp_path: Path, *rules: dict[str, Any]) -> Iterator[tuple[FilingClient, RunningWorld]]:
    with (
        running_world(tmp_path / "books.sqlite", write_faults(tmp_path, *rules)) as world,
        FilingClient(world.url, FILING_TOKENS, rule=HURRIED) as client,
    ):
        yield client, world


@pytest.mark.parametrize("fault", ["hang", "truncated", "lost_answer"])
def test_an_answer_that_does_not_come_whole_is_asked_for_again(tmp_path: Path, fault: str) -> None:
    with bank(tmp_path, {"fault": fault, "asks": [0]}) as (client, world, _):
        assert client.balances(ACCOUNT, job_id="job")
        first, second = read_calls(world.books)
    assert (first.fault, first.succeeded) == (Fault(fault), False)
    assert (second.fault, second.succeeded) == (None, True)


@pytest.mark.parametrize("fault", ["hang", "truncated", "lost_answer"])
def test_a_peer_whose_answers_never_come_whole_is_unavailable(tmp_path: Path, fault: str) -> None:
    with (
        bank(tmp_path, {"fault": fault}) as (client, _, _),
        pytest.raises(PeerUnavailable, match=r"no answer .*failed 2 times") as raised,
    ):
        client.balances(ACCOUNT, job_id="job")
    assert (raised.value.status, raised.value.retry_after) == (None, None)
    assert raised.value.__cause__ is not None


@pytest.mark.parametrize("fault", ["hang", "truncated", "lost_answer", "death"])
def test_a_submission_without_a_whole_answer_is_unknown_and_sent_once(tmp_path: Path, fault: str) -> None:
    with gateway(tmp_path, {"fault": fault, "kinds": ["filing_submit"]}) as (client, world):
        with pytest.raises(OutcomeUnknown, match="look it up"):
            client.submit("key", BODY, job_id="job")
        assert len(read_filings(world.books)) == 1
        assert len(read_calls(world.books)) == 1


def test_a_lookup_without_a_whole_answer_is_only_unavailable(tmp_path: Path) -> None:
    with (
        gateway(tmp_path, {"fault": "truncated", "kinds": ["filing_lookup"]}) as (client, _),
        pytest.raises(PeerUnavailable, match="asking again is safe"),
    ):
        client.lookup("key", job_id="job")


def test_what_a_failing_peer_asks_for_is_waited_and_told(tmp_path: Path) -> None:
    burst = {"fault": "scripted_5xx", "status": 503, "retry_after_s": 4}
    with bank(tmp_path, burst) as (client, _, waits), pytest.raises(PeerUnavailable) as raised:
        client.balances(ACCOUNT, job_id="job")
    assert waits == [4]
    assert (raised.value.status, raised.value.retry_after) == (503, dt.timedelta(seconds=4))


def test_a_failing_gateway_leaves_the_outcome_unknown_and_says_when_to_ask(tmp_path: Path) -> None:
    burst = {"fault": "scripted_5xx", "status": 503, "retry_after_s": 4}
    with gateway(tmp_path, burst) as (client, _):
        with pytest.raises(OutcomeUnknown) as unknown:
            client.submit("key", BODY, job_id="job")
        with pytest.raises(PeerUnavailable) as unavailable:
            client.lookup("key", job_id="job")
    assert unknown.value.retry_after == unavailable.value.retry_after == dt.timedelta(seconds=4)


def test_a_page_that_comes_again_adds_nothing_and_the_listing_goes_on(tmp_path: Path) -> None:
    with bank(tmp_path, page_size="5") as (client, _, _):
        plain = client.transactions(ACCOUNT, SINCE, job_id="plain")
    (tmp_path / "books.sqlite").unlink()
    with bank(tmp_path, {"fault": "repeated_page"}, page_size="5") as (client, world, _):
        repeated = client.transactions(ACCOUNT, SINCE, job_id="repeated")
        calls = read_calls(world.books)
    assert repeated == plain
    pages = -(-len(plain) // 5)
    assert pages > 2
    assert len(calls) == 2 * pages - 1  # each page but the first was answered twice over


def test_a_page_that_leads_to_itself_ends_in_one_clear_error(tmp_path: Path) -> None:
    with (
        bank(tmp_path, {"fault": "endless_page"}, page_size="5") as (client, world, _),
        pytest.raises(PeerAnswerInvalid, match=rf"listing of account {ACCOUNT} does not end \(a continuation key came"),
    ):
        client.transactions(ACCOUNT, SINCE, job_id="job")
    assert len(read_calls(world.books)) == 2


def test_a_key_that_expired_begins_the_listing_anew_and_some_time_gives_up(tmp_path: Path) -> None:
    with (
        bank(tmp_path, page_size="5", key_lifetime_s="0.000001") as (client, world, _),
        pytest.raises(PeerRejected, match="WRONG_CONTINUATION_KEY"),
    ):
        client.transactions(ACCOUNT, SINCE, job_id="job")
    statuses = [call.status for call in read_calls(world.books)]
    assert statuses == [200, 422] * LISTING_LIMIT


def test_a_key_that_is_known_for_long_enough_is_followed_to_the_end(tmp_path: Path) -> None:
    with bank(tmp_path, page_size="5", key_lifetime_s="60") as (client, world, _):
        listing = client.transactions(ACCOUNT, SINCE, job_id="job")
        calls = read_calls(world.books)
    assert len(calls) == -(-len(listing) // 5) > 1
    assert {call.outcome for call in calls} == {Outcome.ANSWERED}


def test_a_consent_that_is_over_is_final_and_names_the_account(tmp_path: Path) -> None:
    with bank(tmp_path, {"fault": "consent_ended"}) as (client, world, waits):
        for ask in (client.balances, client.details):
            with pytest.raises(ConsentEnded, match=f"consent for account {ACCOUNT} is over") as ended:
                ask(ACCOUNT, job_id="job")
            assert (ended.value.account, ended.value.code) == (str(ACCOUNT), "REVOKED_SESSION")
        assert len(read_calls(world.books)) == 2  # asked once each: only the customer can help
    assert waits == []


def test_details_tell_whose_account_it_is(tmp_path: Path) -> None:
    with bank(tmp_path) as (client, _, _):
        details = client.details(ACCOUNT, job_id="job")
    assert (details.product, details.currency) == ("Geschäftskonto", "EUR")
    assert details.holder
    assert details.iban is not None
    assert details.iban.startswith("DE")

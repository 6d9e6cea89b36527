"""The aggregator's client, against a real world."""

import contextlib
import datetime as dt
import http.server
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import httpx2
import pytest
import redis

from nightshift.banking.client import AggregatorClient, Balance
from nightshift.banking.pacing import CallPacer
from nightshift.peers import PeerAnswerInvalid, PeerRejected, PeerUnavailable, RetryRule
from nightshift.tokens import AGGREGATOR, Credentials, TokenSource
from nightshift.world.bank import newest_first, open_account
from nightshift.world.books import read_calls
from nightshift.world.kinds import Fault
from nightshift.world.testing import CREDENTIALS, TOKENS, RunningWorld, running_world

STRANGER = TokenSource(replace(Credentials.new(), application_id=CREDENTIALS.application_id), audience=AGGREGATOR)
ACCOUNT = UUID(int=5)
SINCE = dt.date(2026, 10, 1)
TODAY = dt.date(2026, 11, 30)


class OpenPacer:
    """A pacer that never makes anyone wait, and counts."""

    def __init__(self) -> None:
        self.count = 0

    def wait(self) -> None:
        self.count += 1


@pytest.fixture
def pacer() -> OpenPacer:
    return OpenPacer()


@pytest.fixture
def client(world: RunningWorld, pacer: OpenPacer) -> Iterator[AggregatorClient]:
    with AggregatorClient(world.url, TOKENS, pacer=pacer) as client:
        yield client


def test_balances_come_as_decimals_with_their_day(client: AggregatorClient) -> None:
    booked, now = client.balances(ACCOUNT, job_id="job-1")
    assert booked == Balance(
        kind="CLBD",
        name="Buchungssaldo",
        amount=booked.amount,
        currency="EUR",
        reference_date=dt.date(2026, 11, 29),
    )
    assert isinstance(booked.amount, Decimal)
    assert booked.amount.as_tuple().exponent == -2
    assert now.kind == "ITAV"


def test_transactions_come_whole_over_all_pages_and_signed(
    client: AggregatorClient, pacer: OpenPacer, world: RunningWorld
) -> None:
    account = UUID(int=6)
    expected = [
        entry
        for entry in newest_first(7, open_account(7, str(account)), start=SINCE, end=TODAY, today=TODAY)
        if entry.shown_from_ask == 0
    ]
    listing = client.transactions(account, SINCE, job_id="paging")
    told = [one for one in listing if one.status == "BOOK"]
    assert [one.entry_reference for one in told] == [entry.reference for entry in expected]
    assert [one.amount * 100 for one in told] == [entry.cents for entry in expected]
    assert [one.booking_date for one in told] == [entry.day for entry in expected]
    assert [one.counterparty for one in told] == [entry.party.name for entry in expected]
    assert [one.purpose for one in told] == [entry.lines for entry in expected]
    pages = [call for call in read_calls(world.books) if call.job_id == "paging"]
    assert len(pages) == pacer.count == -(-len(listing) // 5) > 1


def test_entries_of_today_that_come_in_later_are_found_by_a_later_call(client: AggregatorClient) -> None:
    found = []
    for number in range(30, 40):
        listings = [client.transactions(UUID(int=number), TODAY, job_id="night") for _ in range(4)]
        references = [{one.entry_reference for one in listing if one.status == "BOOK"} for listing in listings]
        assert references[0] <= references[1] <= references[3]
        found.append(len(references[3] - references[0]))
    assert sum(found) > 0


def test_a_hundred_threads_share_one_client(world: RunningWorld, valkey: redis.Redis) -> None:
    pacer = CallPacer(valkey, "world", calls_per_second=1000, burst=100)
    accounts = [UUID(int=number) for number in range(100)]
    with (
        AggregatorClient(world.url, TOKENS, pacer=pacer) as client,
        ThreadPoolExecutor(100) as threads,
    ):
        told = list(threads.map(lambda account: client.balances(account, job_id=f"of {account}"), accounts))
    assert all(len(balances) == 2 for balances in told)
    asked = {call.subject for call in read_calls(world.books) if call.job_id == f"of {call.subject}"}
    assert asked == {str(account) for account in accounts}


def test_a_call_beyond_the_rate_limit_waits_as_asked_and_succeeds(books: Path, pacer: OpenPacer) -> None:
    waits: list[float] = []

    def really_wait(seconds: float) -> None:
        waits.append(seconds)
        time.sleep(seconds)  # the client's own wait: the world's bucket fills in real time

    with (
        running_world(books, {"--calls-per-second": "1", "--burst": "1"}) as world,
        AggregatorClient(world.url, TOKENS, pacer=pacer, sleep=really_wait, chance=lambda: 0.5) as client,
    ):
        client.balances(ACCOUNT, job_id="one")
        client.balances(ACCOUNT, job_id="two")
    calls = read_calls(books)
    assert [call.fault for call in calls] == [None, Fault.RATE_LIMIT, None]
    assert waits == [1.125]  # Retry-After 1, and half of a quarter more
    assert pacer.count == 3


def test_a_peer_that_keeps_throttling_is_given_up(books: Path, pacer: OpenPacer) -> None:
    waits: list[float] = []
    with (
        running_world(books, {"--throttled-ratio": "1"}) as world,
        AggregatorClient(world.url, TOKENS, pacer=pacer, sleep=waits.append, chance=lambda: 0) as client,
        pytest.raises(PeerUnavailable, match="throttled 5 times") as raised,
    ):
        client.balances(ACCOUNT, job_id="job")
    assert (raised.value.status, raised.value.retry_after) == (429, dt.timedelta(seconds=1))
    assert waits == [1, 1, 1, 1]
    assert [call.fault for call in read_calls(books)] == [Fault.SCRIPTED_429] * 5


def test_a_failing_peer_is_asked_four_times_with_growing_waits(books: Path, pacer: OpenPacer) -> None:
    waits: list[float] = []
    with (
        running_world(books, {"--failed-ratio": "1"}) as world,
        AggregatorClient(world.url, TOKENS, pacer=pacer, sleep=waits.append) as client,
        pytest.raises(PeerUnavailable, match="failed 4 times") as raised,
    ):
        client.transactions(ACCOUNT, SINCE, job_id="job")
    assert raised.value.status in (500, 503, 504)
    assert waits == [1, 2, 4]
    assert pacer.count == len(read_calls(books)) == 4


def test_some_faults_do_not_keep_the_work_from_being_done(books: Path, pacer: OpenPacer) -> None:
    faulty = {"--throttled-ratio": "0.2", "--failed-ratio": "0.2"}
    with (
        running_world(books, faulty) as world,
        AggregatorClient(world.url, TOKENS, pacer=pacer, sleep=lambda _: None) as client,
    ):
        for number in range(30):
            assert client.balances(UUID(int=number), job_id=f"job-{number}")
    assert {call.fault for call in read_calls(books)} == {None, Fault.SCRIPTED_429, Fault.SCRIPTED_5XX}


def test_nobody_there_is_unavailable_after_the_retries(closed_port: int, pacer: OpenPacer) -> None:
    waits: list[float] = []
    url = f"http://127.0.0.1:{closed_port}"
    with (
        AggregatorClient(url, TOKENS, pacer=pacer, sleep=waits.append) as client,
        pytest.raises(PeerUnavailable, match="no answer") as raised,
    ):
        client.balances(ACCOUNT, job_id="job")
    assert raised.value.status is None
    assert isinstance(raised.value.__cause__, httpx2.ConnectError)
    assert waits == [1, 2, 4]


def test_an_answer_that_does_not_come_in_time_is_asked_for_again(books: Path, pacer: OpenPacer) -> None:
    rule = RetryRule(timeout=dt.timedelta(seconds=0.3), backoffs=(dt.timedelta(0),))
    with (
        running_world(books, {"--aggregator-median-s": "300", "--aggregator-sigma": "0"}) as world,
        AggregatorClient(world.url, TOKENS, pacer=pacer, rule=rule) as client,
        pytest.raises(PeerUnavailable, match="ReadTimeout"),
    ):
        client.balances(ACCOUNT, job_id="job")
    assert pacer.count == 2


def test_a_wrong_token_is_rejected_at_once_with_the_remedy(world: RunningWorld, pacer: OpenPacer) -> None:
    with (
        AggregatorClient(world.url, STRANGER, pacer=pacer) as client,
        pytest.raises(PeerRejected, match="check the application's credentials") as raised,
    ):
        client.balances(ACCOUNT, job_id="job")
    assert raised.value.status == 401
    assert pacer.count == 1


def test_a_wrong_question_is_rejected_in_the_peers_words(client: AggregatorClient) -> None:
    with pytest.raises(PeerRejected, match="DATE_FROM_IN_FUTURE"):
        client.transactions(ACCOUNT, dt.date(2027, 1, 1), job_id="job")
    with pytest.raises(PeerRejected, match="WRONG_REQUEST_PARAMETERS"):
        client.balances("no-uuid", job_id="job")


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>",
        b"[]",
        b"{}",
        b'{"balances": [{}]}',
        b'{"balances": null}',
        b'{"balances": [{"name": "x", "balance_type": "CLBD",'
        b' "balance_amount": {"amount": "1,5", "currency": "EUR"}}]}',
    ],
)
def test_an_answer_of_another_shape_is_an_error_of_its_own(answer: bytes, pacer: OpenPacer) -> None:
    with (
        canned_peer(answer) as url,
        AggregatorClient(url, TOKENS, pacer=pacer) as client,
        pytest.raises(PeerAnswerInvalid, match="cannot be read"),
    ):
        client.balances(ACCOUNT, job_id="job")


@contextlib.contextmanager
def canned_peer(answer: bytes) -> Iterator[str]:
    """Serve one answer, whatever is asked."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
            return

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            serving.join()

"""The filing gateway's client: nothing twice, whatever happens in between."""

import contextlib
import datetime as dt
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nightshift.filings.client import FilingClient
from nightshift.peers import OutcomeUnknown, PeerAnswerInvalid, PeerRejected, PeerUnavailable, RetryRule
from nightshift.world.books import read_calls, read_filings
from nightshift.world.testing import FILING_TOKENS, TOKENS, RunningWorld, running_world

BODY = {"form": "UStVA", "amount": "1234.56"}
HURRIED = RetryRule(timeout=dt.timedelta(seconds=0.3), backoffs=())
SLOW = {"--gateway-median-s": "300", "--gateway-sigma": "0"}


@pytest.fixture
def client(world: RunningWorld) -> Iterator[FilingClient]:
    with FilingClient(world.url, FILING_TOKENS) as client:
        yield client


@contextlib.contextmanager
def peer_that_answers(answer: bytes) -> Iterator[str]:
    """Read one request, send some bytes, and hang up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        serving = threading.Thread(target=serve)
        serving.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        serving.join(timeout=20)


def test_a_receipt_tells_what_was_accepted_and_when(client: FilingClient, world: RunningWorld) -> None:
    receipt = client.submit("key-1", BODY, job_id="job-1")
    filing = next(one for one in read_filings(world.books) if one.idempotency_key == "key-1")
    assert (receipt.filing_id, receipt.received_at) == (filing.filing_id, filing.received_at)
    assert (receipt.status, receipt.replayed, receipt.idempotency_key) == ("accepted", False, "key-1")
    assert filing.job_id == "job-1"
    assert client.lookup("key-1", job_id="job-1") == receipt


def test_a_second_submit_with_the_same_key_returns_the_first_filing(client: FilingClient) -> None:
    first = client.submit("twice", BODY, job_id="job-1")
    second = client.submit("twice", BODY, job_id="job-2")
    assert (second.filing_id, second.received_at) == (first.filing_id, first.received_at)
    assert second.replayed


def test_an_unknown_key_is_none_and_no_error(client: FilingClient) -> None:
    assert client.lookup("never", job_id="job") is None


def test_another_404_is_no_unknown_key(world: RunningWorld) -> None:
    with (
        FilingClient(f"{world.url}/filings/elsewhere", FILING_TOKENS) as client,
        pytest.raises(PeerRejected, match="404"),
    ):
        client.lookup("never", job_id="job")


def test_another_body_under_a_used_key_is_rejected(client: FilingClient) -> None:
    client.submit("reused", BODY, job_id="job")
    with pytest.raises(PeerRejected, match="idempotency_key_reused") as raised:
        client.submit("reused", {**BODY, "amount": "1.00"}, job_id="job")
    assert raised.value.status == 422


def test_a_token_for_another_peer_is_rejected_with_the_remedy(world: RunningWorld) -> None:
    with (
        FilingClient(world.url, TOKENS) as client,
        pytest.raises(PeerRejected, match="check the application's credentials"),
    ):
        client.submit("key", BODY, job_id="job")


def test_a_gateway_killed_after_accepting_leaves_an_unknown_outcome_that_lookup_resolves(books: Path) -> None:
    with running_world(books, {"--gateway-median-s": "2", "--gateway-sigma": "0"}) as dying:
        kill = threading.Thread(target=kill_once_it_has_filed, args=[dying])
        kill.start()
        with FilingClient(dying.url, FILING_TOKENS) as client, pytest.raises(OutcomeUnknown, match="look it up"):
            client.submit("key", BODY, job_id="job")
        kill.join(timeout=20)
    with running_world(books) as world, FilingClient(world.url, FILING_TOKENS) as client:
        found = client.lookup("key", job_id="job")
        again = client.submit("key", BODY, job_id="job")
    (filing,) = read_filings(books)
    assert found is not None
    assert found.filing_id == again.filing_id == filing.filing_id
    assert again.replayed


def kill_once_it_has_filed(world: RunningWorld) -> None:
    deadline = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=20)
    while not read_filings(world.books) and dt.datetime.now(dt.UTC) < deadline:
        threading.Event().wait(0.01)
    world.process.kill()


def test_a_submission_that_times_out_is_unknown_and_not_sent_again(books: Path) -> None:
    with (
        running_world(books, SLOW) as world,
        FilingClient(world.url, FILING_TOKENS, rule=HURRIED) as client,
        pytest.raises(OutcomeUnknown, match="ReadTimeout"),
    ):
        client.submit("key", BODY, job_id="job")
    assert len(read_calls(books)) == 1


def test_a_lookup_that_times_out_is_only_unavailable(books: Path) -> None:
    with (
        running_world(books, SLOW) as world,
        FilingClient(world.url, FILING_TOKENS, rule=HURRIED) as client,
        pytest.raises(PeerUnavailable, match="ReadTimeout"),
    ):
        client.lookup("key", job_id="job")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 201 Crea",
        b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 201 Created\r\nContent-Length: 99\r\n\r\n{",
    ],
)
def test_an_answer_that_tells_nothing_leaves_the_outcome_unknown(answer: bytes) -> None:
    with peer_that_answers(answer) as url, FilingClient(url, FILING_TOKENS) as client, pytest.raises(OutcomeUnknown):
        client.submit("key", BODY, job_id="job")


def test_a_throttled_submission_took_no_effect() -> None:
    answer = b"HTTP/1.1 429 Slow\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n"
    with (
        peer_that_answers(answer) as url,
        FilingClient(url, FILING_TOKENS) as client,
        pytest.raises(PeerUnavailable) as raised,
    ):
        client.submit("key", BODY, job_id="job")
    assert raised.value.retry_after == dt.timedelta(seconds=9)


def test_a_lookup_answered_with_nonsense_is_an_error_of_its_own() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    with (
        peer_that_answers(answer) as url,
        FilingClient(url, FILING_TOKENS) as client,
        pytest.raises(PeerAnswerInvalid),
    ):
        client.lookup("key", job_id="job")


def test_a_refused_connection_is_tried_again_because_nothing_was_sent(books: Path, closed_port: int) -> None:
    waits: list[float] = []
    with contextlib.ExitStack() as stack:

        def start_the_world(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 2:
                stack.enter_context(running_world(books, {"--port": str(closed_port)}))

        url = f"http://127.0.0.1:{closed_port}"
        client = stack.enter_context(FilingClient(url, FILING_TOKENS, sleep=start_the_world))
        receipt = client.submit("key", BODY, job_id="job")
    assert waits == [1, 2]
    assert not receipt.replayed
    assert len(read_filings(books)) == 1


def test_nobody_there_means_that_nothing_was_sent(closed_port: int) -> None:
    waits: list[float] = []
    with (
        FilingClient(f"http://127.0.0.1:{closed_port}", FILING_TOKENS, sleep=waits.append) as client,
        pytest.raises(PeerUnavailable, match="nothing was sent"),
    ):
        client.submit("key", BODY, job_id="job")
    assert waits == [1, 2, 4]

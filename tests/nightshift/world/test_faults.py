"""What callers get when the script of faults hits them, and what the books say of it."""

import datetime as dt
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest

from nightshift.world.books import Call, read_calls, read_filings
from nightshift.world.kinds import DIED_EXIT_CODE, Fault, Outcome, PathKind
from nightshift.world.testing import TOKEN, RunningWorld, running_world, write_faults

BALANCES = f"/accounts/{UUID(int=5)}/balances"
BODY = {"form": "UStVA"}


@contextmanager
def faulty_world(tmp_path: Path, *rules: dict[str, Any]) -> Iterator[tuple[RunningWorld, httpx2.Client]]:
    headers = {"Authorization": f"Bearer {TOKEN}", "Idempotency-Key": "key"}
    with (
        running_world(tmp_path / "books.sqlite", write_faults(tmp_path, *rules)) as world,
        httpx2.Client(base_url=world.url, headers=headers, timeout=20, trust_env=False) as http,
    ):
        yield world, http


def booked(world: RunningWorld) -> list[tuple[Fault | None, Outcome | None, int | None]]:
    return [(call.fault, call.outcome, call.status) for call in read_calls(world.books)]


def settled(world: RunningWorld) -> list[Call]:
    """Wait until it is booked what each caller got, and read the calls."""
    deadline = time.monotonic() + 20
    while None in [call.outcome for call in read_calls(world.books)]:
        assert time.monotonic() < deadline, read_calls(world.books)
        time.sleep(0.02)
    return read_calls(world.books)


def ended(world: RunningWorld) -> list[Call]:
    """Wait for the world's end, so that all is booked, and read its calls."""
    world.process.terminate()
    world.process.wait(timeout=20)
    return read_calls(world.books)


def test_without_a_script_every_call_is_answered_whole(tmp_path: Path) -> None:
    with faulty_world(tmp_path) as (world, http):
        assert http.get(BALANCES).status_code == 200
        assert booked(world) == [(None, Outcome.ANSWERED, 200)]
        assert read_calls(world.books)[0].succeeded


def test_a_hang_lasts_until_the_caller_gives_up(tmp_path: Path) -> None:
    with faulty_world(tmp_path, {"fault": "hang", "asks": [0]}) as (world, http):
        with pytest.raises(httpx2.ReadTimeout):
            http.get(BALANCES, timeout=httpx2.Timeout(20, read=0.5))
        assert http.get(BALANCES).status_code == 200
        first, second = settled(world)
    assert (first.fault, first.outcome, first.status, first.answered_at) == (
        Fault.HANG,
        Outcome.CALLER_LEFT,
        None,
        None,
    )
    assert (second.fault, second.outcome) == (None, Outcome.ANSWERED)


def test_a_hang_ends_with_the_world(tmp_path: Path) -> None:
    with faulty_world(tmp_path, {"fault": "hang"}) as (world, http):
        with pytest.raises(httpx2.ReadTimeout):
            http.get(BALANCES, timeout=httpx2.Timeout(20, read=0.2))
        [call] = ended(world)
    assert world.process.returncode == 0
    assert call.outcome in (Outcome.CALLER_LEFT, Outcome.CLOSING)


def test_a_truncated_body_is_shorter_than_it_says(tmp_path: Path) -> None:
    with faulty_world(tmp_path, {"fault": "truncated", "asks": [0]}) as (world, http):
        with http.stream("GET", BALANCES) as answer:
            assert answer.status_code == 200
            announced = int(answer.headers["Content-Length"])
            pieces = answer.iter_raw()
            got = next(pieces)
            with pytest.raises(httpx2.RemoteProtocolError):
                next(pieces)
        assert 0 < len(got) < announced
        assert announced == len(http.get(BALANCES).content)
        assert booked(world) == [(Fault.TRUNCATED, Outcome.TRUNCATED, 200), (None, Outcome.ANSWERED, 200)]
        first, second = read_calls(world.books)
    assert not first.succeeded
    assert second.succeeded


def test_a_burst_is_over_when_its_window_is(tmp_path: Path) -> None:
    burst = {"fault": "scripted_429", "kinds": ["balances"], "to_s": 1.5, "retry_after_s": 2}
    with faulty_world(tmp_path, burst) as (world, http):
        first = http.get(BALANCES)
        while (answer := http.get(BALANCES)).status_code == 429:
            assert answer.headers["Retry-After"] == "2"
        calls = read_calls(world.books)
    assert (first.status_code, first.json()["error"]) == (429, "ASPSP_RATE_LIMIT_EXCEEDED")
    assert answer.status_code == 200
    assert {call.fault for call in calls[:-1]} == {Fault.SCRIPTED_429}
    assert {call.retry_after_s for call in calls[:-1]} == {2}
    assert calls[-1].received_at - calls[0].received_at <= dt.timedelta(seconds=20)


def test_a_burst_of_5xx_says_when_to_come_back(tmp_path: Path) -> None:
    burst = {"fault": "scripted_5xx", "status": 503, "retry_after_s": 7}
    with faulty_world(tmp_path, burst) as (world, http):
        answer = http.get(BALANCES)
        refused = http.post("/filings", json=BODY)
        assert read_filings(world.books) == []
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "7")
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "7")


@pytest.mark.parametrize("fault", ["lost_answer", "truncated"])
def test_a_filing_whose_answer_is_lost_took_effect_once(tmp_path: Path, fault: str) -> None:
    with faulty_world(tmp_path, {"fault": fault, "kinds": ["filing_submit"], "asks": [0]}) as (world, http):
        with pytest.raises(httpx2.RemoteProtocolError):
            http.post("/filings", json=BODY)
        [filing] = read_filings(world.books)
        found = http.get("/filings", params={"idempotency_key": "key"})
        again = http.post("/filings", json=BODY)
        calls = read_calls(world.books)
    assert found.json()["filing_id"] == again.json()["filing_id"] == filing.filing_id
    assert again.headers["Idempotent-Replayed"] == "true"
    assert [call.kind for call in calls] == [PathKind.FILING_SUBMIT, PathKind.FILING_LOOKUP, PathKind.FILING_SUBMIT]
    assert calls[0].outcome == (Outcome.NO_ANSWER if fault == "lost_answer" else Outcome.TRUNCATED)


def test_a_gateway_that_dies_after_accepting_has_booked_the_filing_and_its_death(tmp_path: Path) -> None:
    rule = {"fault": "death", "kinds": ["filing_submit"], "asks": [0]}
    with faulty_world(tmp_path, rule) as (world, http):
        with pytest.raises(httpx2.TransportError):
            http.post("/filings", json=BODY)
        assert world.process.wait(timeout=20) == DIED_EXIT_CODE
    assert booked(world) == [(Fault.DEATH, Outcome.DIED, None)]
    [filing] = read_filings(world.books)
    with faulty_world(tmp_path, rule) as (world, http):  # the same script again: it dies of the first call alone
        assert http.post("/filings", json=BODY).json()["filing_id"] == filing.filing_id
    assert len(read_filings(world.books)) == 1


def test_a_slow_gateway_takes_twice_its_latency(tmp_path: Path) -> None:
    with faulty_world(tmp_path, {"fault": "slow", "kinds": ["filing_submit"], "asks": [1]}) as (world, http):
        for key in ("a", "a"):
            http.post("/filings", json=BODY, headers={"Idempotency-Key": key})
        plain, slow = read_calls(world.books)
    with running_world(tmp_path / "other.sqlite") as other:
        for _ in range(2):
            headers = {"Authorization": f"Bearer {TOKEN}", "Idempotency-Key": "a"}
            httpx2.post(f"{other.url}/filings", json=BODY, headers=headers, trust_env=False)
        usual = read_calls(other.books)
    assert slow.fault is Fault.SLOW
    assert plain.latency_s == usual[0].latency_s
    assert slow.latency_s == pytest.approx(2 * (usual[1].latency_s or 0))


def test_a_consent_that_the_script_ends_is_refused_in_the_interfaces_words(tmp_path: Path) -> None:
    with faulty_world(tmp_path, {"fault": "consent_ended"}) as (world, http):
        answer = http.get(BALANCES)
        assert booked(world) == [(Fault.CONSENT_ENDED, Outcome.ANSWERED, 401)]
    assert (answer.status_code, answer.json()["error"]) == (401, "REVOKED_SESSION")


def test_a_wrong_script_keeps_the_world_from_starting_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="exit code 2"), faulty_world(tmp_path, {"fault": "earthquake"}):
        pass

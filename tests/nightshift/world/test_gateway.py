"""The filing gateway: one filing a key, whatever the callers do."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import httpx2
import pytest

from nightshift.world.books import read_calls, read_filings
from nightshift.world.testing import RunningWorld

BODY = {"form": "UStVA", "period": "2026-10", "amount": "1234.56", "note": "Für Größe"}


def submit(http: httpx2.Client, key: str, body: object = BODY) -> httpx2.Response:
    return http.post("/filings", json=body, headers={"Idempotency-Key": key, "X-Job-Id": f"job of {key}"})


def test_a_submission_is_accepted_and_can_be_looked_up(http: httpx2.Client, world: RunningWorld) -> None:
    receipt = submit(http, "first")
    assert receipt.status_code == 201
    assert receipt.json()["status"] == "accepted"
    assert "Idempotent-Replayed" not in receipt.headers
    assert http.get("/filings", params={"idempotency_key": "first"}).json() == receipt.json()
    filing = next(one for one in read_filings(world.books) if one.idempotency_key == "first")
    assert (filing.filing_id, filing.job_id) == (receipt.json()["filing_id"], "job of first")


def test_the_same_key_again_returns_the_first_filing_and_says_so(http: httpx2.Client, world: RunningWorld) -> None:
    first = submit(http, "again")
    reordered = dict(reversed(BODY.items()))
    second = submit(http, "again", reordered)
    assert second.json() == first.json()
    assert second.headers["Idempotent-Replayed"] == "true"
    booked = [call.replayed for call in read_calls(world.books) if call.subject == "again"]
    assert booked == [False, True]


def test_the_same_key_with_another_body_is_refused_and_changes_nothing(
    http: httpx2.Client, world: RunningWorld
) -> None:
    receipt = submit(http, "reused").json()
    refused = submit(http, "reused", {**BODY, "amount": "1.00"})
    assert refused.status_code == 422
    assert refused.json()["error"] == "idempotency_key_reused"
    assert http.get("/filings", params={"idempotency_key": "reused"}).json() == receipt
    assert [one.idempotency_key for one in read_filings(world.books)].count("reused") == 1


def test_twenty_submissions_at_the_same_moment_make_one_filing(http: httpx2.Client, world: RunningWorld) -> None:
    together = Barrier(20)

    def submit_together(_: int) -> httpx2.Response:
        together.wait(timeout=10)
        return submit(http, "rush")

    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(submit_together, range(20)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["filing_id"] for answer in answers}) == 1
    assert sum("Idempotent-Replayed" in answer.headers for answer in answers) == 19
    assert [one.idempotency_key for one in read_filings(world.books)].count("rush") == 1
    calls = [call for call in read_calls(world.books) if call.subject == "rush"]
    assert sorted(call.ask for call in calls if call.ask is not None) == list(range(20))


def test_an_unknown_key_has_a_404_of_its_own(http: httpx2.Client) -> None:
    answer = http.get("/filings", params={"idempotency_key": "never"})
    assert (answer.status_code, answer.json()["error"]) == (404, "filing_unknown")
    assert "error" not in http.get("/no-such-path").json()


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": ""}, {"Idempotency-Key": "x" * 256}])
def test_a_submission_without_a_usable_key_is_refused(http: httpx2.Client, headers: dict[str, str]) -> None:
    answer = http.post("/filings", json=BODY, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (400, "idempotency_key_missing")


@pytest.mark.parametrize("body", [b"", b"[1]", b"{'a': 1}", b'"text"', b"[" * 100_000, b"\xff\xfe"])
def test_a_body_that_is_no_json_object_is_refused(http: httpx2.Client, body: bytes) -> None:
    answer = http.post("/filings", content=body, headers={"Idempotency-Key": "odd"})
    assert (answer.status_code, answer.json()["error"]) == (400, "body_invalid")


def test_odd_characters_in_a_body_are_kept(http: httpx2.Client, world: RunningWorld) -> None:
    answer = http.post("/filings", content=rb'{"a": "\ud800 \u0000"}', headers={"Idempotency-Key": "surrogate"})
    assert answer.status_code == 201
    assert "surrogate" in [one.idempotency_key for one in read_filings(world.books)]

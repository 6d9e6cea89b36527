"""The aggregator's answers, against the vendor's own description of its interface where that is at hand."""

import datetime as dt
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx2
import pytest
from tests.nightshift.world.interface import problems

from nightshift.tokens import AGGREGATOR, GATEWAY, Credentials, sign
from nightshift.world.books import read_calls
from nightshift.world.testing import CREDENTIALS, RunningWorld

ACCOUNT = f"/accounts/{UUID(int=5)}"
SINCE = "/transactions?date_from=2026-10-01"


def test_the_checker_finds_what_is_missing_unknown_or_malformed(schemas: dict[str, Any]) -> None:
    broken = {"balances": [{"name": 3, "balance_amount": {"currency": "EUR", "amount": "1,5"}, "colour": "red"}]}
    found = problems(broken, schemas["HalBalances"], schemas, where="answer")
    assert len(found) == 4


@pytest.mark.parametrize(
    ("path", "schema"),
    [("/details", "AccountResource"), ("/balances", "HalBalances"), (SINCE, "HalTransactions")],
)
def test_an_answer_has_the_shape_of_the_interface(
    http: httpx2.Client, schemas: dict[str, Any], path: str, schema: str
) -> None:
    answer = http.get(ACCOUNT + path)
    assert answer.status_code == 200
    assert problems(answer.json(), schemas[schema], schemas, where=schema) == []


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("/accounts/no-uuid/balances", 422, "WRONG_REQUEST_PARAMETERS"),
        (ACCOUNT + "/transactions?date_from=30.11.2026", 422, "WRONG_REQUEST_PARAMETERS"),
        (ACCOUNT + "/transactions?date_to=2026-11-01", 422, "DATE_TO_WITHOUT_DATE_FROM"),
        (ACCOUNT + "/transactions?date_from=2026-12-01", 422, "DATE_FROM_IN_FUTURE"),
        (ACCOUNT + "/transactions?date_from=2026-11-02&date_to=2026-11-01", 422, "WRONG_DATE_INTERVAL"),
        (ACCOUNT + "/transactions?date_from=0001-01-01", 422, "WRONG_TRANSACTIONS_PERIOD"),
        (ACCOUNT + "/transactions?continuation_key=bm9uc2Vuc2U=", 422, "WRONG_CONTINUATION_KEY"),
    ],
)
def test_an_invalid_request_is_refused_in_the_interfaces_words(
    http: httpx2.Client, path: str, status: int, error: str
) -> None:
    answer = http.get(path)
    assert answer.status_code == answer.json()["code"] == status
    assert answer.json()["error"] == error


def test_errors_have_the_shape_of_the_interface(http: httpx2.Client, schemas: dict[str, Any]) -> None:
    for answer in (
        http.get("/accounts/no-uuid/balances"),
        http.get(ACCOUNT + "/details", headers={"Authorization": ""}),
    ):
        assert problems(answer.json(), schemas["ErrorResponse"], schemas, where="error") == []


def test_nobody_passes_without_the_token_and_the_books_tell_who_tried(http: httpx2.Client, world: RunningWorld) -> None:
    answer = http.get(ACCOUNT + "/details", headers={"Authorization": "Bearer wrong", "X-Job-Id": "thief"})
    assert answer.status_code == 401
    booked = [call for call in read_calls(world.books) if call.job_id == "thief"]
    assert [(call.status, call.granted_at) for call in booked] == [(401, None)]


NOW = dt.datetime.now(dt.UTC)
HOUR = dt.timedelta(hours=1)
STRANGER = replace(Credentials.new(), application_id=CREDENTIALS.application_id)


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (sign(CREDENTIALS, audience=AGGREGATOR, at=NOW - 2 * HOUR, lifetime=HOUR), "it is expired"),
        (sign(CREDENTIALS, audience=GATEWAY, at=NOW, lifetime=HOUR), "it is not for aggregator"),
        (sign(STRANGER, audience=AGGREGATOR, at=NOW, lifetime=HOUR), "its signature is wrong"),
        (sign(CREDENTIALS, audience=AGGREGATOR, at=NOW, lifetime=25 * HOUR), "it is good for more than 24 hours"),
    ],
)
def test_a_token_that_is_not_good_is_refused_in_the_interfaces_words(
    http: httpx2.Client, world: RunningWorld, token: str, why: str
) -> None:
    answer = http.get(ACCOUNT + "/details", headers={"Authorization": f"Bearer {token}", "X-Job-Id": why})
    assert (answer.status_code, answer.json()["code"], answer.json()["error"]) == (401, 401, "UNAUTHORIZED_ACCESS")
    assert why in answer.json()["message"]
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert [call.granted_at for call in read_calls(world.books) if call.job_id == why] == [None]


def test_a_token_for_the_aggregator_does_not_open_the_gateway(http: httpx2.Client) -> None:
    token = sign(CREDENTIALS, audience=AGGREGATOR, at=NOW, lifetime=HOUR)
    answer = http.get("/filings?idempotency_key=x", headers={"Authorization": f"Bearer {token}"})
    assert (answer.status_code, "not for filing-gateway" in answer.json()["message"]) == (401, True)


def test_pages_together_are_the_whole_listing(http: httpx2.Client) -> None:
    busy = f"/accounts/{UUID(int=77)}/transactions?date_from=2025-01-01"
    page = http.get(busy).json()
    entries, pages = page["transactions"], 1
    while key := page.get("continuation_key"):
        page = http.get(busy, params={"date_from": "2025-01-01", "continuation_key": key}).json()
        entries, pages = entries + page["transactions"], pages + 1
    assert pages > 1
    assert len({entry["entry_reference"] for entry in entries}) == len(entries)
    days = [entry["booking_date"] for entry in entries]
    assert days == sorted(days, reverse=True)
    assert days[-1] < "2025-01-10"


def test_a_status_that_no_entry_has_lists_nothing(http: httpx2.Client) -> None:
    assert http.get(f"{ACCOUNT}{SINCE}&transaction_status=RJCT").json() == {"transactions": []}

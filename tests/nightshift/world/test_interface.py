"""The aggregator's answers, against the vendor's own description of its interface where that is at hand."""

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are not among our tools

from nightshift.world.books import read_calls
from nightshift.world.testing import RunningWorld

DESCRIPTION = Path(__file__).parents[3].parent / "shared/data/enable-banking/openapi.yml"
ACCOUNT = f"/accounts/{UUID(int=5)}"
SINCE = "/transactions?date_from=2026-10-01"
JSON_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    if not DESCRIPTION.exists():
        pytest.skip("the vendor's interface description is not beside the repository")
    schemas: dict[str, Any] = yaml.safe_load(DESCRIPTION.read_text(encoding="utf-8"))["components"]["schemas"]
    return schemas


def problems(value: Any, schema: dict[str, Any], schemas: dict[str, Any], *, where: str) -> list[str]:
    """List where a value breaks its schema; a field that the schema does not know is a problem too."""
    if "$ref" in schema:
        return problems(value, schemas[schema["$ref"].rsplit("/", 1)[1]], schemas, where=where)
    if "type" in schema and not isinstance(value, JSON_TYPES[schema["type"]]):
        return [f"{where}: {value!r} is no {schema['type']}"]
    if isinstance(value, list):
        return [p for n, v in enumerate(value) for p in problems(v, schema["items"], schemas, where=f"{where}[{n}]")]
    if isinstance(value, dict):
        known = schema.get("properties", {})
        found = [f"{where}: {name} is missing" for name in schema.get("required", []) if name not in value]
        found += [f"{where}: {name} is not known" for name in value if name not in known]
        inner = [(name, value[name], known[name]) for name in value if name in known]
        return found + [p for n, v, s in inner for p in problems(v, s, schemas, where=f"{where}.{n}")]
    return text_problems(value, schema, where=where)


def text_problems(value: Any, schema: dict[str, Any], *, where: str) -> list[str]:
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where}: {value!r} is none of {schema['enum']}"]
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return [f"{where}: {value!r} does not match {schema['pattern']}"]
    parsers: dict[str, Callable[[str], object]] = {
        "date": dt.date.fromisoformat,
        "date-time": dt.datetime.fromisoformat,
        "uuid": UUID,
    }
    try:
        parsers.get(schema.get("format", ""), str)(value)
    except ValueError:
        return [f"{where}: {value!r} is no {schema['format']}"]
    return []


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

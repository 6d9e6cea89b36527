"""Sessions: what a consent opens, and when it is over."""

import datetime as dt
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import httpx2
import pytest
from tests.nightshift.world.interface import problems

from nightshift.world.books import read_calls
from nightshift.world.kinds import PathKind
from nightshift.world.testing import TOKEN, RunningWorld, running_world

ONE, OTHER = UUID(int=1001), UUID(int=1002)
DAY = dt.timedelta(days=1)


def asked(http: httpx2.Client, *accounts: UUID, lasts: dt.timedelta = DAY, **change: Any) -> httpx2.Response:
    named = [{"other": {"identification": str(one), "scheme_name": "CPAN"}} for one in accounts]
    body = {
        "access": {"valid_until": (dt.datetime.now(dt.UTC) + lasts).isoformat(), "accounts": named},
        "aspsp": {"name": "Hansebank Lübeck", "country": "DE"},
        "state": "our mark",
        "redirect_url": "https://nightshift.invalid/connected",
        "psu_type": "business",
    }
    return http.post("/auth", json=body | change)


def given(http: httpx2.Client, *accounts: UUID, lasts: dt.timedelta = DAY) -> tuple[str, str]:
    """Get a consent all the way; return the person's page and the session's id."""
    page = asked(http, *accounts, lasts=lasts).json()["url"]
    code = code_of(httpx2.get(page, trust_env=False))
    return page, http.post("/sessions", json={"code": code}).json()["session_id"]


def code_of(page: httpx2.Response) -> str:
    assert page.status_code == 302
    brought = parse_qs(urlsplit(page.headers["Location"]).query)
    assert brought["state"] == ["our mark"]
    return brought["code"][0]


def error(http: httpx2.Client, account: UUID) -> tuple[int, str]:
    answer = http.get(f"/accounts/{account}/balances")
    return answer.status_code, answer.json().get("error", "")


def test_the_way_to_a_session_has_the_shapes_of_the_interface(http: httpx2.Client, schemas: dict[str, Any]) -> None:
    start = asked(http, ONE, OTHER)
    assert problems(start.json(), schemas["StartAuthorizationResponse"], schemas, where="auth") == []
    code = code_of(httpx2.get(start.json()["url"], trust_env=False))
    session = http.post("/sessions", json={"code": code})
    assert problems(session.json(), schemas["AuthorizeSessionResponse"], schemas, where="session") == []
    told = http.get(f"/sessions/{session.json()['session_id']}")
    assert problems(told.json(), schemas["GetSessionResponse"], schemas, where="state") == []
    closed = http.delete(f"/sessions/{session.json()['session_id']}")
    assert problems(closed.json(), schemas["SuccessResponse"], schemas, where="closed") == []
    for refused in (asked(http, lasts=-DAY), http.get(f"/sessions/{UUID(int=0)}"), http.post("/sessions", json={})):
        assert problems(refused.json(), schemas["ErrorResponse"], schemas, where="error") == []


def test_a_session_names_its_accounts_and_opens_them(http: httpx2.Client) -> None:
    _, session = given(http, ONE, OTHER)
    told = http.get(f"/sessions/{session}").json()
    assert (told["status"], told["accounts"]) == ("AUTHORIZED", [str(ONE), str(OTHER)])
    assert error(http, ONE) == (200, "")


def test_a_person_whose_accounts_are_not_named_allows_some(http: httpx2.Client) -> None:
    _, session = given(http)
    told = http.get(f"/sessions/{session}").json()
    assert len({UUID(one) for one in told["accounts"]}) == 2


def test_a_code_makes_one_session(http: httpx2.Client) -> None:
    code = code_of(httpx2.get(asked(http, ONE).json()["url"], trust_env=False))
    assert http.post("/sessions", json={"code": code}).status_code == 200
    again = http.post("/sessions", json={"code": code})
    assert (again.status_code, again.json()["error"]) == (422, "ALREADY_AUTHORIZED")
    wrong = http.post("/sessions", json={"code": "guessed"})
    assert (wrong.status_code, wrong.json()["error"]) == (422, "WRONG_AUTHORIZATION_CODE")


def test_a_consent_that_nobody_gave_has_no_code(http: httpx2.Client) -> None:
    assert asked(http, ONE).status_code == 200
    assert http.get(f"/authorize/{UUID(int=3)}").status_code == 404


def test_a_closed_session_opens_nothing(http: httpx2.Client) -> None:
    account = UUID(int=1003)
    _, session = given(http, account)
    assert http.delete(f"/sessions/{session}").status_code == 200
    assert error(http, account) == (401, "CLOSED_SESSION")
    assert http.get(f"/sessions/{session}").json()["status"] == "CLOSED"


def test_a_person_may_revoke_and_give_anew(http: httpx2.Client) -> None:
    account = UUID(int=1004)
    page, session = given(http, account)
    assert httpx2.delete(page, trust_env=False).status_code == 200
    assert error(http, account) == (401, "REVOKED_SESSION")
    assert http.get(f"/sessions/{session}").json()["status"] == "REVOKED"
    given(http, account)
    assert error(http, account) == (200, "")


def test_a_session_expires_by_itself(http: httpx2.Client) -> None:
    account = UUID(int=1005)
    _, session = given(http, account, lasts=dt.timedelta(seconds=2))
    deadline = time.monotonic() + 20
    while error(http, account) == (200, ""):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert error(http, account) == (401, "EXPIRED_SESSION")
    assert http.get(f"/sessions/{session}").json()["status"] == "EXPIRED"


@pytest.mark.parametrize(
    "change",
    [
        {"aspsp": {"name": "Bank", "country": "XX"}},
        {"access": {}},
        {"access": {"valid_until": "2030-01-01T00:00:00"}},
        {"access": {"valid_until": "2020-01-01T00:00:00Z"}},
        {"access": {"valid_until": "2030-01-01T00:00:00Z", "accounts": [{"iban": "DE89370400440532013000"}]}},
    ],
)
def test_a_wrong_request_is_refused_in_the_interfaces_words(http: httpx2.Client, change: dict[str, Any]) -> None:
    answer = asked(http, ONE, **change)
    assert (answer.status_code, answer.json()["error"]) == (422, "WRONG_REQUEST_PARAMETERS")


def test_every_step_is_in_the_books(http: httpx2.Client, world: RunningWorld) -> None:
    given(http, ONE)
    steps = [call.method for call in read_calls(world.books) if call.kind is PathKind.SESSION][-3:]
    assert steps == ["POST", "GET", "POST"]


def test_where_consents_are_required_no_other_account_is_answered_also_after_a_restart(books: Path) -> None:
    required = {"--consents-required": ""}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with running_world(books, required) as world, client(world, headers) as http:
        assert error(http, ONE) == (404, "ACCOUNT_DOES_NOT_EXIST")
        given(http, ONE)
        assert error(http, ONE) == (200, "")
        assert error(http, OTHER) == (404, "ACCOUNT_DOES_NOT_EXIST")
    with running_world(books, required) as world, client(world, headers) as http:
        assert error(http, ONE) == (200, "")
        assert error(http, OTHER) == (404, "ACCOUNT_DOES_NOT_EXIST")


def client(world: RunningWorld, headers: dict[str, str]) -> httpx2.Client:
    return httpx2.Client(base_url=world.url, headers=headers, timeout=20, trust_env=False)

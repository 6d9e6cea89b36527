"""Consents at the aggregator: ask for one, let the customer give it at the bank, and make a session of it."""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import httpx2

from nightshift.banking.client import PEER
from nightshift.calling import PeerCalls, PeerClient, Unanswered
from nightshift.peers import PeerAnswerInvalid, PeerRejected, PeerUnavailable, RetryRule
from nightshift.tokens import TokenSource

BACK_TO = "https://nightshift.invalid/connected"
"""Where the customer's browser is sent from the bank, with a code."""


@dataclass(frozen=True, kw_only=True)
class Authorization:
    """A consent that was asked for.

    Attributes:
        authorization_id: The aggregator's id of it.
        url: The bank's page, where the customer gives it.
        state: Our mark, which comes back with the code.
    """

    authorization_id: UUID
    url: str
    state: str


@dataclass(frozen=True, kw_only=True)
class Session:
    """A consent that was given.

    Attributes:
        session_id: The aggregator's id.
        status: AUTHORIZED, EXPIRED, CLOSED, REVOKED, ...
        accounts: The aggregator's ids of the accounts that it is for.
        valid_until: When it ends by itself (aware).
    """

    session_id: UUID
    status: str
    accounts: tuple[UUID, ...]
    valid_until: dt.datetime


class ConsentClient(PeerClient):
    """Client of the aggregator's sessions. Each call is made once: a person is there, who can click again."""

    def __init__(self, base_url: str, tokens: TokenSource, *, rule: RetryRule | None = None) -> None:
        """Open the connections (made when needed).

        Args:
            base_url: Where the aggregator is.
            tokens: Signs the calls.
            rule: How long to wait for an answer.
        """
        super().__init__(PeerCalls(base_url, tokens, peer=PEER, rule=rule or RetryRule()))

    def ask_for(self, accounts: Sequence[UUID], *, bank: str, valid_until: dt.datetime, job_id: str) -> Authorization:
        """Ask for a consent.

        Args:
            accounts: The aggregator's ids of the accounts that it shall be for.
            bank: Name of their bank, a German one.
            valid_until: How long it shall last (aware).
            job_id: Whose call this is.

        Raises:
            PeerUnavailable, PeerRejected, PeerAnswerInvalid: See `nightshift.peers`.
        """
        named = [{"other": {"identification": str(one), "scheme_name": "CPAN"}} for one in accounts]
        body = {
            "access": {"valid_until": valid_until.isoformat(), "accounts": named},
            "aspsp": {"name": bank, "country": "DE"},
            "state": secrets.token_urlsafe(8),
            "redirect_url": BACK_TO,
            "psu_type": "business",
        }
        told = self._call("POST", "/auth", job_id=job_id, body=body)
        with self._calls.reading():
            return Authorization(
                authorization_id=UUID(told["authorization_id"]), url=told["url"], state=str(body["state"])
            )

    def authorize(self, code: str, *, job_id: str) -> Session:
        """Make a session of the code that the customer brought back. Errors as for `ask_for`."""
        told = self._call("POST", "/sessions", job_id=job_id, body={"code": code})
        with self._calls.reading():
            return Session(
                session_id=UUID(told["session_id"]),
                status="AUTHORIZED",
                accounts=tuple(UUID(one["uid"]) for one in told["accounts"]),
                valid_until=dt.datetime.fromisoformat(told["access"]["valid_until"]),
            )

    def session(self, session_id: UUID, *, job_id: str) -> Session:
        """Ask where a session stands. Errors as for `ask_for`."""
        told = self._call("GET", f"/sessions/{session_id}", job_id=job_id)
        with self._calls.reading():
            return Session(
                session_id=session_id,
                status=told["status"],
                accounts=tuple(UUID(one) for one in told["accounts"]),
                valid_until=dt.datetime.fromisoformat(told["access"]["valid_until"]),
            )

    def close_session(self, session_id: UUID, *, job_id: str) -> None:
        """End a consent on our side. Errors as for `ask_for`."""
        self._call("DELETE", f"/sessions/{session_id}", job_id=job_id)

    def _call(self, method: str, path: str, *, job_id: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        answer = self._calls.ask(method, path, job_id=job_id, body=body)
        if isinstance(answer, Unanswered) or answer.status_code >= 500 or answer.status_code == 429:
            raise self._calls.unavailable(answer, "not asked again")
        if answer.status_code != 200:
            remedy = "ask the customer for a new consent"
            raise PeerRejected(self._calls.refusal(answer), peer=PEER, remedy=remedy, status=answer.status_code)
        return self._calls.facts(answer)


def browser() -> httpx2.Client:
    """Return what opens the bank's pages, for any number of customers: making one costs more than a page."""
    return httpx2.Client(timeout=10, trust_env=False)


def agree(authorization: Authorization, opener: httpx2.Client) -> str:
    """Give a consent as the customer would: open the bank's page, agree, and bring the code back.

    Args:
        authorization: What was asked for.
        opener: See `browser`.

    Raises:
        PeerUnavailable: The page cannot be had.
        PeerAnswerInvalid: It leads elsewhere, or brings back another state than ours.
    """
    try:
        page = opener.get(authorization.url)
    except httpx2.TransportError as error:
        what = f"the bank's page {authorization.url} does not open ({str(error) or type(error).__name__})"
        raise PeerUnavailable(what, peer=PEER) from error
    brought = parse_qs(urlsplit(page.headers.get("Location", "")).query)
    if brought.get("state") != [authorization.state] or len(brought.get("code", [])) != 1:
        what = f"the bank's page {authorization.url} brings no code back"
        raise PeerAnswerInvalid(what, peer=PEER, remedy="begin the authorization anew")
    return brought["code"][0]

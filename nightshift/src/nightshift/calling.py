"""Calls to a peer: connections, tokens and timeouts, and an answer or its absence put into our words.

What the clients of all peers do alike. Each decides for itself what to ask again: see `nightshift.peers`.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from decimal import InvalidOperation
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Self

import httpx2

from nightshift.peers import PeerAnswerInvalid, PeerUnavailable, RetryRule
from nightshift.tokens import TokenSource

CONNECTION_LIMIT = 128
_IDLE_SECONDS = 30
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


@dataclass(frozen=True, kw_only=True)
class Unanswered:
    """No whole answer came: nobody there, a hang that outlasted the timeout, a body that was cut in the middle.

    Attributes:
        was_sent: Whether the peer may have the request; False only if no connection was made.
        cause: The vendor's error.
    """

    was_sent: bool
    cause: httpx2.RequestError

    def __str__(self) -> str:
        """Return it in words."""
        return f"{type(self.cause).__name__}: {self.cause}"


class SignedCalls(httpx2.Auth):
    """Puts a signed token on each request."""

    def __init__(self, tokens: TokenSource) -> None:
        self._tokens = tokens

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Sign one request (httpx's protocol)."""
        request.headers["Authorization"] = f"Bearer {self._tokens.token()}"
        yield request


class PeerCalls:
    """Connections to one peer, for up to `CONNECTION_LIMIT` threads of this process. A context manager.

    Thread-safe; it must not be carried over a fork. A call is made once, and never again by itself.
    """

    def __init__(self, base_url: str, tokens: TokenSource, *, peer: str, rule: RetryRule) -> None:
        """Set up; connections are made when they are needed.

        Args:
            base_url: Where the peer is.
            tokens: Signs the calls.
            peer: Which peer, as a word.
            rule: How long to wait for each step of a call.
        """
        self.peer = peer
        self._http = httpx2.Client(
            base_url=base_url,
            auth=SignedCalls(tokens),
            timeout=httpx2.Timeout(rule.timeout.total_seconds(), connect=rule.connect_timeout.total_seconds()),
            limits=httpx2.Limits(
                max_connections=CONNECTION_LIMIT,
                max_keepalive_connections=CONNECTION_LIMIT,
                keepalive_expiry=_IDLE_SECONDS,  # shorter than the peer's, or requests die on a closed one
            ),
            trust_env=False,  # a proxy in the environment is not meant for these peers
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def ask(
        self,
        method: str,
        path: str,
        *,
        job_id: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response | Unanswered:
        """Make one call.

        Args:
            method: HTTP method.
            path: From the peer's address on.
            job_id: Whose call this is; sent along as `X-Job-Id`.
            query: Parameters.
            body: JSON body, or None for none.
            headers: More headers.

        Returns:
            The whole answer whatever its status, or that none came.
        """
        told = {"X-Job-Id": job_id, **(headers or {})}
        json = None if body is None else dict(body)
        try:
            return self._http.request(method, path, params=dict(query or {}), json=json, headers=told)
        except httpx2.RequestError as error:
            return Unanswered(was_sent=not isinstance(error, _NEVER_SENT), cause=error)

    def unavailable(self, answer: httpx2.Response | Unanswered, reason: str) -> PeerUnavailable:
        """Make the error of a peer that gave no useful answer; `reason` says why it is not asked again."""
        if isinstance(answer, Unanswered):
            error = PeerUnavailable(f"no answer ({answer}), {reason}", peer=self.peer)
            error.__cause__ = answer.cause
            return error
        status = answer.status_code
        return PeerUnavailable(
            f"status {status}, {reason}", peer=self.peer, status=status, retry_after=retry_after_of(answer)
        )

    def facts(self, answer: httpx2.Response) -> dict[str, Any]:
        """Read the JSON object of an answer; empty where it is none."""
        try:
            told = answer.json()
        except ValueError:
            return {}
        return told if isinstance(told, dict) else {}

    def refusal(self, answer: httpx2.Response) -> str:
        """Say in the peer's words what it refused."""
        told = self.facts(answer)
        asked = answer.request.url.path
        return f"status {answer.status_code} {told.get('error', '')} for {asked}: {told.get('message', '')}"

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Translate what goes wrong while an answer is read.

        Raises:
            PeerAnswerInvalid: The answer does not have the shape of the interface.
        """
        try:
            yield
        except (KeyError, TypeError, ValueError, InvalidOperation) as error:
            raise PeerAnswerInvalid(
                f"an answer that cannot be read ({type(error).__name__}: {error})",
                peer=self.peer,
                remedy="compare it with the peer's interface description",
            ) from error


def retry_after_of(response: httpx2.Response, *, now: dt.datetime | None = None) -> dt.timedelta | None:
    """Read `Retry-After` (RFC 9110) in either form, seconds or a date; None if it is missing or neither.

    Args:
        response: The peer's answer.
        now: Now (aware), for the date; None takes the system's clock. A date that is past means no wait.
    """
    text = response.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return dt.timedelta(seconds=min(int(text), 10**9))
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    aware = at if at.tzinfo is not None else at.replace(tzinfo=dt.UTC)
    return max(aware - (now or dt.datetime.now(dt.UTC)), dt.timedelta(0))


class PeerClient:
    """A client of one peer: its connections are closed with it."""

    def __init__(self, calls: PeerCalls) -> None:
        """Take the connections."""
        self._calls = calls

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._calls.close()

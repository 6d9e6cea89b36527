"""Client of the filing gateway: submit once under a key, and look up what became of it."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx2

from nightshift.peers import (
    OutcomeUnknown,
    PeerAnswerInvalid,
    PeerRejected,
    PeerUnavailable,
    RetryRule,
    Tries,
    after_failure,
    open_connections,
    retry_after_of,
)

PEER = "filing gateway"
UNKNOWN_FILING = "filing_unknown"
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


@dataclass(frozen=True, kw_only=True)
class FilingReceipt:
    """The gateway's word that it accepted a filing.

    Attributes:
        filing_id: The gateway's id.
        idempotency_key: The key that it was submitted under.
        status: `accepted`.
        received_at: When it took effect (aware, UTC).
        replayed: The gateway had this filing before this call: nothing new took effect.
    """

    filing_id: str
    idempotency_key: str
    status: str
    received_at: dt.datetime
    replayed: bool


class FilingClient:
    """Client of the filing gateway, safe to use from many threads.

    What was sent is never sent again by itself. Only a connection that could not be made, so that nothing was
    sent, is tried again after 1, 2 and 4 seconds.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        rule: RetryRule | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Open the connections (made when needed; build one client a process, after the fork).

        Args:
            base_url: Where the gateway is.
            token: Bearer token.
            rule: How long to wait for an answer, and to try for a connection.
            sleep: Takes seconds.
        """
        self._rule = rule or RetryRule()
        self._connections = open_connections(base_url, token, rule=self._rule)
        self._sleep = sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def submit(self, key: str, body: Mapping[str, Any], *, job_id: str) -> FilingReceipt:
        """Submit a filing. At most one filing takes effect under a key, however often it is submitted.

        Args:
            key: Idempotency key, 1 to 255 ASCII characters.
            body: What is filed; plain JSON values.
            job_id: Whose call this is; sent along as `X-Job-Id`.

        Returns:
            The receipt, the first one's if the key had been used with the same body.

        Raises:
            OutcomeUnknown: It was sent, and nothing tells whether it took effect: ask `lookup`.
            PeerUnavailable: Nothing took effect: no connection, or throttled.
            PeerRejected: The gateway refused it, as for a key that was used with another body (422).
        """
        headers = {"Idempotency-Key": key, "X-Job-Id": job_id}
        request = self._connections.build_request("POST", "/filings", json=dict(body), headers=headers)
        try:
            answer = self._send(request)
        except httpx2.RequestError as error:
            raise _unknown(key, f"{type(error).__name__}: {error}") from error
        if answer.status_code >= 500:
            raise _unknown(key, f"status {answer.status_code}")
        _refuse(answer)
        try:
            return _receipt(answer)
        except PeerAnswerInvalid as error:
            raise _unknown(key, str(error)) from error

    def lookup(self, key: str, *, job_id: str) -> FilingReceipt | None:
        """Ask whether a filing took effect under a key.

        Args:
            key: Idempotency key.
            job_id: Whose call this is; sent along as `X-Job-Id`.

        Returns:
            The receipt, or None if the gateway knows of none *by now*: a submission that is still on its way
            may take effect later, under the same key.

        Raises:
            PeerUnavailable: No answer; asking again is safe.
            PeerRejected: The gateway refused the question.
            PeerAnswerInvalid: The answer cannot be read.
        """
        request = self._connections.build_request(
            "GET", "/filings", params={"idempotency_key": key}, headers={"X-Job-Id": job_id}
        )
        try:
            answer = self._send(request)
        except httpx2.RequestError as error:
            raise PeerUnavailable(f"no answer ({type(error).__name__}: {error})", peer=PEER) from error
        if answer.status_code == 404 and _facts(answer).get("error") == UNKNOWN_FILING:
            return None
        if answer.status_code >= 500:
            raise PeerUnavailable(f"status {answer.status_code}", peer=PEER, status=answer.status_code)
        _refuse(answer)
        return _receipt(answer)

    def _send(self, request: httpx2.Request) -> httpx2.Response:
        tries = Tries()
        while True:
            try:
                return self._connections.send(request)
            except _NEVER_SENT as error:
                tries = Tries(failed=tries.failed + 1)
                step = after_failure(tries, rule=self._rule)
                if step.wait is None:
                    what = f"no connection ({error}), {step.reason}, nothing was sent"
                    raise PeerUnavailable(what, peer=PEER) from error
                self._sleep(step.wait.total_seconds())


def _refuse(answer: httpx2.Response) -> None:
    status = answer.status_code
    if status == 429:
        raise PeerUnavailable("throttled", peer=PEER, status=status, retry_after=retry_after_of(answer))
    if status not in (200, 201):
        told = _facts(answer)
        remedy = "check the gateway's token" if status == 401 else "correct the filing; it will be refused as it is"
        what = f"status {status} {told.get('error', '')}: {told.get('message', '')}"
        raise PeerRejected(what, peer=PEER, remedy=remedy, status=status)


def _receipt(answer: httpx2.Response) -> FilingReceipt:
    told = _facts(answer)
    try:
        return FilingReceipt(
            filing_id=told["filing_id"],
            idempotency_key=told["idempotency_key"],
            status=told["status"],
            received_at=dt.datetime.fromisoformat(told["received_at"]),
            replayed=answer.headers.get("Idempotent-Replayed") == "true",
        )
    except (KeyError, TypeError, ValueError) as error:
        what = f"an answer that cannot be read ({type(error).__name__}: {error})"
        raise PeerAnswerInvalid(what, peer=PEER, remedy="compare it with the gateway's interface") from error


def _facts(answer: httpx2.Response) -> dict[str, Any]:
    try:
        told = answer.json()
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _unknown(key: str, why: str) -> OutcomeUnknown:
    what = f"no word on whether the filing under {key} took effect ({why})"
    return OutcomeUnknown(what, peer=PEER, remedy="look it up; do not just send it again")

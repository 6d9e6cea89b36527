"""Client of the filing gateway: submit once under a key, and look up what became of it."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from nightshift.calling import PeerCalls, PeerClient, Unanswered, retry_after_of
from nightshift.peers import (
    OutcomeUnknown,
    PeerAnswerInvalid,
    PeerRejected,
    RetryRule,
    Tries,
    after_failure,
)
from nightshift.tokens import TokenSource

PEER = "filing gateway"
UNKNOWN_FILING = "filing_unknown"


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


class FilingClient(PeerClient):
    """Client of the filing gateway, safe to use from many threads.

    What was sent is never sent again by itself. Only a connection that could not be made, so that nothing was
    sent, is tried again after 1, 2 and 4 seconds.
    """

    def __init__(
        self,
        base_url: str,
        tokens: TokenSource,
        *,
        rule: RetryRule | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Open the connections (made when needed; build one client a process, after the fork).

        Args:
            base_url: Where the gateway is.
            tokens: Signs the calls.
            rule: How long to wait for an answer, and to try for a connection.
            sleep: Takes seconds.
        """
        self._rule = rule or RetryRule()
        super().__init__(PeerCalls(base_url, tokens, peer=PEER, rule=self._rule))
        self._sleep = sleep

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
        answer = self._ask("POST", "/filings", job_id=job_id, body=body, headers={"Idempotency-Key": key})
        if isinstance(answer, Unanswered):
            raise _unknown(key, str(answer)) from answer.cause
        if answer.status_code >= 500:
            raise _unknown(key, f"status {answer.status_code}", retry_after=retry_after_of(answer))
        self._refuse(answer)
        try:
            return self._receipt(answer)
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
        answer = self._ask("GET", "/filings", job_id=job_id, query={"idempotency_key": key})
        if isinstance(answer, Unanswered) or answer.status_code >= 500:
            raise self._calls.unavailable(answer, "asking again is safe")
        if answer.status_code == 404 and self._calls.facts(answer).get("error") == UNKNOWN_FILING:
            return None
        self._refuse(answer)
        return self._receipt(answer)

    def _ask(self, method: str, path: str, **told: Any) -> httpx2.Response | Unanswered:
        tries = Tries()
        while True:
            answer = self._calls.ask(method, path, **told)
            if not isinstance(answer, Unanswered) or answer.was_sent:
                return answer
            tries = Tries(failed=tries.failed + 1)
            step = after_failure(tries, rule=self._rule)
            if step.wait is None:
                raise self._calls.unavailable(answer, f"{step.reason}, nothing was sent")
            self._sleep(step.wait.total_seconds())

    def _refuse(self, answer: httpx2.Response) -> None:
        status = answer.status_code
        if status == 429:
            raise self._calls.unavailable(answer, "throttled")
        if status not in (200, 201):
            remedy = (
                "check the application's credentials at the gateway, and this machine's clock"
                if status in (401, 403)
                else "correct the filing; it will be refused as it is"
            )
            raise PeerRejected(self._calls.refusal(answer), peer=PEER, remedy=remedy, status=status)

    def _receipt(self, answer: httpx2.Response) -> FilingReceipt:
        told = self._calls.facts(answer)
        with self._calls.reading():
            return FilingReceipt(
                filing_id=told["filing_id"],
                idempotency_key=told["idempotency_key"],
                status=told["status"],
                received_at=dt.datetime.fromisoformat(told["received_at"]),
                replayed=answer.headers.get("Idempotent-Replayed") == "true",
            )


def _unknown(key: str, why: str, *, retry_after: dt.timedelta | None = None) -> OutcomeUnknown:
    what = f"no word on whether the filing under {key} took effect ({why})"
    remedy = "look it up; do not just send it again"
    return OutcomeUnknown(what, peer=PEER, remedy=remedy, retry_after=retry_after)

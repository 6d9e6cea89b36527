"""Client of the bank aggregator, in the shape of Enable Banking's interface."""

from __future__ import annotations

import contextlib
import datetime as dt
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from types import TracebackType
from typing import Any, Protocol, Self
from uuid import UUID

import httpx2

from nightshift.peers import (
    NextTry,
    PeerAnswerInvalid,
    PeerRejected,
    PeerUnavailable,
    RetryRule,
    Tries,
    after_failure,
    after_throttling,
    open_connections,
    retry_after_of,
)

PEER = "aggregator"
_Answer = httpx2.Response | httpx2.RequestError
_REMEDIES = {
    401: "check the aggregator's token",
    403: "the bank does not allow this; ask the customer to renew the consent",
    404: "the account is not known there; ask the customer to connect it again",
}


class Pacer(Protocol):
    """What spaces the calls out; `nightshift.banking.pacing.CallPacer` is one."""

    def wait(self) -> None:
        """Return when a call may be made."""


@dataclass(frozen=True, kw_only=True)
class Balance:
    """A balance of an account.

    Attributes:
        kind: ISO 20022 code, as CLBD (booked at the close) or ITAV (available by now).
        name: The bank's word for it.
        amount: Signed amount.
        currency: ISO 4217 code.
        reference_date: The day that it is of, or None.
    """

    kind: str
    name: str
    amount: Decimal
    currency: str
    reference_date: dt.date | None


@dataclass(frozen=True, kw_only=True)
class BankTransaction:
    """An entry of an account.

    Attributes:
        entry_reference: The bank's immutable id, unique inside the account; None where the bank gives none.
        amount: Signed amount; negative leaves the account.
        currency: ISO 4217 code.
        status: BOOK, PDNG, ...
        booking_date: Day of booking, or None while it is pending.
        value_date: Day of value, or None.
        counterparty: Name of the other side, or None.
        counterparty_iban: Its IBAN, or None.
        purpose: Verwendungszweck, line by line.
        booking_text: Buchungstext, as LASTSCHRIFT, or None.
    """

    entry_reference: str | None
    amount: Decimal
    currency: str
    status: str
    booking_date: dt.date | None
    value_date: dt.date | None
    counterparty: str | None
    counterparty_iban: str | None
    purpose: tuple[str, ...]
    booking_text: str | None


class AggregatorClient:
    """Client of the aggregator: paced, patient within bounds, safe to use from many threads.

    Every try waits for the pacer. A 429 is waited out as asked, with jitter, a bounded number of times; after
    a 5xx or no answer it asks again in 1, 2 and 4 seconds. All calls are reads: safe to repeat.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        pacer: Pacer,
        rule: RetryRule | None = None,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """Open the connections (made when needed; build one client a process, after the fork).

        Args:
            base_url: Where the aggregator is.
            token: Bearer token.
            pacer: Spaces the calls of all processes out.
            rule: How patient to be.
            sleep: Takes seconds.
            chance: Draws a number in [0, 1), to spread waits.
        """
        self._pacer = pacer
        self._rule = rule or RetryRule()
        self._connections = open_connections(base_url, token, rule=self._rule)
        self._sleep = sleep
        self._chance = chance

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def balances(self, account_id: UUID | str, *, job_id: str) -> tuple[Balance, ...]:
        """Ask for the balances of an account.

        Args:
            account_id: The aggregator's id of it.
            job_id: Whose call this is; sent along as `X-Job-Id`.

        Raises:
            PeerUnavailable, PeerRejected, PeerAnswerInvalid, PacerUnavailable: See `nightshift.peers`.
        """
        told = self._get(f"/accounts/{account_id}/balances", {}, job_id=job_id)
        with _reading():
            return tuple(_balance(one) for one in told["balances"])

    def transactions(self, account_id: UUID | str, date_from: dt.date, *, job_id: str) -> tuple[BankTransaction, ...]:
        """Ask for all entries booked since a day, page by page.

        Args:
            account_id: The aggregator's id of the account.
            date_from: First booking day, included.
            job_id: Whose call this is; sent along as `X-Job-Id`.

        Returns:
            The entries in the aggregator's order, newest first.

        Raises:
            PeerUnavailable, PeerRejected, PeerAnswerInvalid, PacerUnavailable: See `nightshift.peers`.
        """
        query = {"date_from": date_from.isoformat()}
        found: list[BankTransaction] = []
        while True:
            page = self._get(f"/accounts/{account_id}/transactions", query, job_id=job_id)
            with _reading():
                found += [_transaction(one) for one in page["transactions"]]
            if not page.get("continuation_key"):
                return tuple(found)
            query = {**query, "continuation_key": page["continuation_key"]}

    def _get(self, path: str, query: Mapping[str, str], *, job_id: str) -> dict[str, Any]:
        tries = Tries()
        while True:
            self._pacer.wait()
            answer = self._ask(path, query, job_id=job_id)
            if isinstance(answer, httpx2.Response) and answer.status_code == 200:
                return _json_object(answer)
            tries, step = self._judge(answer, tries)
            if step.wait is None:
                raise _unavailable(answer, step.reason)
            self._sleep(step.wait.total_seconds())

    def _ask(self, path: str, query: Mapping[str, str], *, job_id: str) -> _Answer:
        try:
            return self._connections.get(path, params=dict(query), headers={"X-Job-Id": job_id})
        except httpx2.RequestError as error:
            return error

    def _judge(self, answer: _Answer, tries: Tries) -> tuple[Tries, NextTry]:
        if not isinstance(answer, httpx2.Response) or answer.status_code >= 500:
            tries = replace(tries, failed=tries.failed + 1)
            return tries, after_failure(tries, rule=self._rule)
        if answer.status_code == 429:
            tries = replace(tries, throttled=tries.throttled + 1)
            wait = retry_after_of(answer)
            return tries, after_throttling(tries, wait, rule=self._rule, chance=self._chance())
        raise _rejected(answer)


def _unavailable(answer: _Answer, reason: str) -> PeerUnavailable:
    if isinstance(answer, httpx2.Response):
        error = PeerUnavailable(
            f"status {answer.status_code}, {reason}",
            peer=PEER,
            status=answer.status_code,
            retry_after=retry_after_of(answer),
        )
    else:
        error = PeerUnavailable(f"no answer ({type(answer).__name__}: {answer}), {reason}", peer=PEER)
        error.__cause__ = answer
    return error


def _rejected(answer: httpx2.Response) -> PeerRejected:
    status = answer.status_code
    try:
        told = _json_object(answer)
    except PeerAnswerInvalid:
        told = {}
    what = f"status {status} {told.get('error', '')} for {answer.request.url.path}: {told.get('message', '')}"
    remedy = _REMEDIES.get(status, "correct the request; it will be refused again as it is")
    return PeerRejected(what, peer=PEER, remedy=remedy, status=status)


def _json_object(answer: httpx2.Response) -> dict[str, Any]:
    with _reading():
        told = answer.json()
        if not isinstance(told, dict):
            raise TypeError("the answer is no JSON object")
        return told


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, InvalidOperation) as error:
        raise PeerAnswerInvalid(
            f"an answer that cannot be read ({type(error).__name__}: {error})",
            peer=PEER,
            remedy="compare it with the peer's interface description",
        ) from error


def _balance(told: Mapping[str, Any]) -> Balance:
    return Balance(
        kind=told["balance_type"],
        name=told["name"],
        amount=Decimal(told["balance_amount"]["amount"]),
        currency=told["balance_amount"]["currency"],
        reference_date=_day(told.get("reference_date")),
    )


def _transaction(told: Mapping[str, Any]) -> BankTransaction:
    incoming = told["credit_debit_indicator"] == "CRDT"
    amount = abs(Decimal(told["transaction_amount"]["amount"]))
    other = "debtor" if incoming else "creditor"
    return BankTransaction(
        entry_reference=told.get("entry_reference"),
        amount=amount if incoming else -amount,
        currency=told["transaction_amount"]["currency"],
        status=told["status"],
        booking_date=_day(told.get("booking_date")),
        value_date=_day(told.get("value_date")),
        counterparty=(told.get(other) or {}).get("name"),
        counterparty_iban=(told.get(f"{other}_account") or {}).get("iban"),
        purpose=tuple(told.get("remittance_information") or ()),
        booking_text=(told.get("bank_transaction_code") or {}).get("description"),
    )


def _day(text: str | None) -> dt.date | None:
    return None if text is None else dt.date.fromisoformat(text)

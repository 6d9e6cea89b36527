"""Client of the bank aggregator, in the shape of Enable Banking's interface."""

from __future__ import annotations

import datetime as dt
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Protocol
from uuid import UUID

import httpx2

from nightshift.calling import PeerCalls, PeerClient, Unanswered, retry_after_of
from nightshift.peers import (
    ConsentEnded,
    NextTry,
    PeerAnswerInvalid,
    PeerRejected,
    RetryRule,
    Tries,
    after_failure,
    after_throttling,
)
from nightshift.tokens import TokenSource

PEER = "aggregator"
PAGE_LIMIT = 1_000
"""Pages of one listing at most: 50,000 entries."""
LISTING_LIMIT = 3
"""How many times one listing is begun, since a key may expire in the middle of one."""
CONSENT_OVER = frozenset({"EXPIRED_SESSION", "CLOSED_SESSION", "REVOKED_SESSION"})
_KEY_GONE = "WRONG_CONTINUATION_KEY"
_REMEDIES = {
    401: "check the application's credentials at the aggregator, and this machine's clock",
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
class AccountDetails:
    """What a bank says of an account itself.

    Attributes:
        iban: Its IBAN, or None.
        holder: Whose it is, or None.
        product: The bank's name for this kind of account, or None.
        currency: ISO 4217 code.
    """

    iban: str | None
    holder: str | None
    product: str | None
    currency: str


@dataclass(frozen=True, kw_only=True)
class BankTransaction:
    """An entry of an account.

    Attributes:
        entry_reference: The bank's id, unique inside the account; None where the bank gives none. That of a
            booked entry never changes; a pending one gets another when it is booked.
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


class AggregatorClient(PeerClient):
    """Client of the aggregator: paced, patient within bounds, safe to use from many threads.

    Every try waits for the pacer. A 429 is waited out as asked, with jitter, a bounded number of times; after
    a 5xx or no whole answer it asks again in 1, 2 and 4 seconds. All calls are reads: safe to repeat.
    """

    def __init__(
        self,
        base_url: str,
        tokens: TokenSource,
        *,
        pacer: Pacer,
        rule: RetryRule | None = None,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """Open the connections (made when needed; build one client a process, after the fork).

        Args:
            base_url: Where the aggregator is.
            tokens: Signs the calls.
            pacer: Spaces the calls of all processes out.
            rule: How patient to be.
            sleep: Takes seconds.
            chance: Draws a number in [0, 1), to spread waits.
        """
        self._pacer = pacer
        self._rule = rule or RetryRule()
        super().__init__(PeerCalls(base_url, tokens, peer=PEER, rule=self._rule))
        self._sleep = sleep
        self._chance = chance

    def details(self, account_id: UUID | str, *, job_id: str) -> AccountDetails:
        """Ask what the bank says of an account itself. Arguments and errors as for `balances`."""
        told = self._get(account_id, "details", {}, job_id=job_id)
        with self._calls.reading():
            return AccountDetails(
                iban=(told.get("account_id") or {}).get("iban"),
                holder=told.get("name"),
                product=told.get("product"),
                currency=told["currency"],
            )

    def balances(self, account_id: UUID | str, *, job_id: str) -> tuple[Balance, ...]:
        """Ask for the balances of an account.

        Args:
            account_id: The aggregator's id of it.
            job_id: Whose call this is; sent along as `X-Job-Id`.

        Raises:
            ConsentEnded: Only the customer can help; the error names the account.
            PeerUnavailable, PeerRejected, PeerAnswerInvalid, PacerUnavailable: See `nightshift.peers`.
        """
        told = self._get(account_id, "balances", {}, job_id=job_id)
        with self._calls.reading():
            return tuple(_balance(one) for one in told["balances"])

    def transactions(self, account_id: UUID | str, date_from: dt.date, *, job_id: str) -> tuple[BankTransaction, ...]:
        """Ask for all entries since a day, booked and pending, page by page to the end.

        A key that expires in the middle begins the listing anew, `LISTING_LIMIT` times in all; an entry that comes
        on two pages counts once.

        Args:
            account_id: The aggregator's id of the account.
            date_from: First day, included.
            job_id: Whose call this is; sent along as `X-Job-Id`.

        Returns:
            The entries in the aggregator's order, newest first.

        Raises:
            ConsentEnded: Only the customer can help; the error names the account.
            PeerAnswerInvalid: Also for a listing that never ends: a key that comes twice, or too many pages.
            PeerUnavailable, PeerRejected, PacerUnavailable: See `nightshift.peers`.
        """
        for _ in range(LISTING_LIMIT - 1):
            try:
                return self._listing(account_id, date_from, job_id=job_id)
            except _KeyExpired:
                continue
        return self._listing(account_id, date_from, job_id=job_id)

    def _listing(self, account_id: UUID | str, date_from: dt.date, *, job_id: str) -> tuple[BankTransaction, ...]:
        query = {"date_from": date_from.isoformat()}
        found: dict[object, BankTransaction] = {}
        keys: set[str] = set()
        while True:
            page = self._get(account_id, "transactions", query, job_id=job_id)
            with self._calls.reading():
                for one in (_transaction(told) for told in page["transactions"]):
                    found.setdefault(_identity(one, len(found)), one)
            if not (key := page.get("continuation_key")):
                return tuple(found.values())
            if key in keys or len(keys) == PAGE_LIMIT:
                raise _endless(str(account_id), "a continuation key came twice" if key in keys else "too many pages")
            keys.add(key)
            query = {**query, "continuation_key": key}

    def _get(self, account_id: UUID | str, what: str, query: Mapping[str, str], *, job_id: str) -> dict[str, Any]:
        tries = Tries()
        while True:
            self._pacer.wait()
            answer = self._calls.ask("GET", f"/accounts/{account_id}/{what}", query=query, job_id=job_id)
            if isinstance(answer, httpx2.Response) and answer.status_code == 200:
                with self._calls.reading():
                    return _json_object(answer)
            tries, step = self._judge(answer, tries, account=str(account_id))
            if step.wait is None:
                raise self._calls.unavailable(answer, step.reason)
            self._sleep(step.wait.total_seconds())

    def _judge(self, answer: httpx2.Response | Unanswered, tries: Tries, *, account: str) -> tuple[Tries, NextTry]:
        if isinstance(answer, Unanswered):
            tries = replace(tries, failed=tries.failed + 1)
            return tries, after_failure(tries, rule=self._rule)
        wait = retry_after_of(answer)
        if answer.status_code >= 500:
            tries = replace(tries, failed=tries.failed + 1)
            return tries, after_failure(tries, wait, rule=self._rule)
        if answer.status_code == 429:
            tries = replace(tries, throttled=tries.throttled + 1)
            return tries, after_throttling(tries, wait, rule=self._rule, chance=self._chance())
        raise self._rejected(answer, account)

    def _rejected(self, answer: httpx2.Response, account: str) -> PeerRejected:
        status, code = answer.status_code, self._calls.facts(answer).get("error")
        if code in CONSENT_OVER:
            return ConsentEnded(peer=PEER, account=account, code=str(code), status=status)
        kind = _KeyExpired if code == _KEY_GONE else PeerRejected
        remedy = _REMEDIES.get(status, "correct the request; it will be refused again as it is")
        return kind(self._calls.refusal(answer), peer=PEER, remedy=remedy, status=status)


class _KeyExpired(PeerRejected):
    """A continuation key is not known any more: the listing has to be begun anew."""


def _identity(one: BankTransaction, number: int) -> object:
    """Tell by what an entry is known again on another page; without a reference it is known by its place alone."""
    return one.entry_reference or number


def _endless(account: str, why: str) -> PeerAnswerInvalid:
    what = f"the listing of account {account} does not end ({why})"
    return PeerAnswerInvalid(what, peer=PEER, remedy="report it to the aggregator; the account's sync is given up")


def _json_object(answer: httpx2.Response) -> dict[str, Any]:
    told = answer.json()
    if not isinstance(told, dict):
        raise TypeError("the answer is no JSON object")
    return told


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

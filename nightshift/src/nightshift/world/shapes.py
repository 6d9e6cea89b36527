"""The JSON that the aggregator speaks: field names and shapes of Enable Banking's interface."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nightshift.world.bank import BankAccount, Entry

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class PageMark:
    """Where a page of transactions begins.

    Attributes:
        start: First booking day asked for.
        end: Last booking day asked for.
        offset: Entries of the range that were answered before.
        ask: The ask of the first page, whose state all pages show; None while that is still to come.
        turn: How often this place was led to before: above 0 only after a page that was repeated.
    """

    start: dt.date
    end: dt.date
    offset: int
    ask: int | None
    turn: int = 0

    def key(self) -> str:
        """Encode as an opaque continuation key."""
        facts = [self.start.isoformat(), self.end.isoformat(), self.offset, self.ask, self.turn]
        return base64.urlsafe_b64encode(json.dumps(facts).encode()).decode()


def read_page_mark(key: str) -> PageMark | None:
    """Decode a continuation key; None if it is not one of ours."""
    try:
        start, end, offset, ask, turn = json.loads(base64.urlsafe_b64decode(key.encode()))
        return PageMark(
            start=dt.date.fromisoformat(start),
            end=dt.date.fromisoformat(end),
            offset=abs(int(offset)),
            ask=abs(int(ask)),
            turn=abs(int(turn)),
        )
    except (ValueError, TypeError):  # what base64 and JSON raise is a ValueError
        return None


def account_json(account: BankAccount) -> Json:
    """Shape of GET /accounts/{account_id}/details."""
    digest = hashlib.sha256(account.iban.encode()).digest()
    identification = base64.b64encode(digest).decode()
    return {
        "account_id": {"iban": account.iban},
        "all_account_ids": [{"identification": account.iban, "scheme_name": "IBAN"}],
        "account_servicer": {"bic_fi": account.bic, "name": account.bank_name},
        "name": account.holder,
        "usage": "ORGA",
        "cash_account_type": "CACC",
        "product": "Geschäftskonto",
        "currency": "EUR",
        "uid": account.account_id,
        "identification_hash": identification,
        "identification_hashes": [identification],
    }


def balances_json(closing_cents: int, today_cents: int, *, today: dt.date) -> Json:
    """Shape of GET /accounts/{account_id}/balances: booked at yesterday's close, and as of now."""
    yesterday = today - dt.timedelta(days=1)
    return {
        "balances": [
            {
                "name": "Buchungssaldo",
                "balance_amount": amount_json(closing_cents),
                "balance_type": "CLBD",
                "reference_date": yesterday.isoformat(),
            },
            {
                "name": "Aktueller Saldo",
                "balance_amount": amount_json(closing_cents + today_cents),
                "balance_type": "ITAV",
                "reference_date": today.isoformat(),
            },
        ]
    }


def transactions_json(account: BankAccount, entries: Sequence[Entry], *, ask: int, more: PageMark | None) -> Json:
    """Shape of one page of GET /accounts/{account_id}/transactions; what comes in after `ask` is pending."""
    page: Json = {
        "transactions": [_transaction_json(account, entry, pending=entry.shown_from_ask > ask) for entry in entries]
    }
    if more is not None:
        page["continuation_key"] = more.key()
    return page


def amount_json(cents: int) -> Json:
    """Shape of an amount: a decimal number as text, and its currency."""
    sign = "-" if cents < 0 else ""
    return {"currency": "EUR", "amount": f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02d}"}


def error_json(status: int, error: str, *, message: str, detail: str | None = None) -> Json:
    """Shape of every error of the aggregator."""
    body: Json = {"message": message, "code": status, "error": error}
    return body if detail is None else {**body, "detail": detail}


def _transaction_json(account: BankAccount, entry: Entry, *, pending: bool) -> Json:
    party = {"name": entry.party.name}
    party_account = {"iban": entry.party_iban} if entry.party_iban else None
    own, own_account = {"name": account.holder}, {"iban": account.iban}
    incoming = entry.family.incoming
    told: Json = {
        # A bank gives an entry its lasting reference when it books it; until then the id is for the day alone.
        "entry_reference": f"PDNG-{entry.reference[::-1]}" if pending else entry.reference,
        "merchant_category_code": entry.party.merchant_code,
        "transaction_amount": amount_json(abs(entry.cents)),
        "creditor": own if incoming else party,
        "creditor_account": own_account if incoming else party_account,
        "debtor": party if incoming else own,
        "debtor_account": party_account if incoming else own_account,
        "bank_transaction_code": {
            "description": entry.family.label,
            "code": entry.family.code,
            "sub_code": entry.family.sub_code,
        },
        "credit_debit_indicator": "CRDT" if incoming else "DBIT",
        "status": "PDNG" if pending else "BOOK",
        "booking_date": None if pending else entry.day.isoformat(),
        "value_date": None if pending else entry.day.isoformat(),
        "transaction_date": entry.traded_on.isoformat(),
        "remittance_information": list(entry.lines),
    }
    return {name: value for name, value in told.items() if value is not None}

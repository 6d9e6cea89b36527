"""The banks behind the aggregator: accounts and entries, each drawn from (seed, account, day, number)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

from nightshift.world.chance import LognormalRule, choose, token, units
from nightshift.world.texts import BANKS, DIRECT_DEBIT, EVERYDAY, HOLDERS, MONTHLY, Family, Party

BALANCE_DAYS = 30
"""Days of entries that a balance contains besides the opening amount."""

_OPENING_EUR = LognormalRule(median=14_000, sigma=0.9)
_ONE_DAY = dt.timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class BankAccount:
    """An account as its bank knows it.

    Attributes:
        account_id: The aggregator's id (a UUID as text).
        iban: German IBAN with a valid check.
        holder: Who it belongs to.
        bank_name: Name of the (invented) bank.
        bic: Its BIC.
        opening_cents: Balance before the days that are told.
        entries_a_day: Mean number of everyday entries on a working day.
    """

    account_id: str
    iban: str
    holder: str
    bank_name: str
    bic: str
    opening_cents: int
    entries_a_day: float


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One booked line of a statement.

    Attributes:
        reference: Unique inside its account, the same whenever it is asked for.
        day: Booking day.
        traded_on: Day of the purchase or of the order.
        cents: Signed amount; negative leaves the account.
        family: What kind of entry it is.
        party: The other side.
        party_iban: The other side's IBAN; None for a card payment.
        lines: Verwendungszweck.
        shown_from_ask: The entry is part of the answer from this ask on; above 0 only for some of today's
            entries, which come in during the night.
    """

    reference: str
    day: dt.date
    traded_on: dt.date
    cents: int
    family: Family
    party: Party
    party_iban: str | None
    lines: tuple[str, ...]
    shown_from_ask: int


def iban(bank_code: str, number: str) -> str:
    """Build a German IBAN, check digits included, from a Bankleitzahl (8 digits) and a number (10 digits)."""
    check = 98 - int(f"{bank_code}{number}131400") % 97
    return f"DE{check:02d}{bank_code}{number}"


def open_account(seed: int, account_id: str) -> BankAccount:
    """Draw an account. Every id is an account; the same id is always the same one."""
    chance = units(seed, "account", account_id)
    bank_name, bic, bank_code = choose(BANKS, chance[0])
    return BankAccount(
        account_id=account_id,
        iban=iban(bank_code, token(seed, "iban", account_id, digits=10)),
        holder=choose(HOLDERS, chance[1]),
        bank_name=bank_name,
        bic=bic,
        opening_cents=round(100 * _OPENING_EUR.at(chance[2])),
        entries_a_day=0.5 + 6 * chance[3] ** 3,
    )


def entries_on(seed: int, account: BankAccount, *, day: dt.date, today: dt.date) -> tuple[Entry, ...]:
    """Draw what was booked on one day: nothing on weekends; rent, tax and wages on their own days."""
    if day.weekday() >= 5:
        return ()
    chance = units(seed, "day", account.account_id, day)
    families = [family for day_of_month, family in MONTHLY if _falls_on(day_of_month, day)]
    families += [
        _everyday_family(units(seed, "family", account.account_id, day, n)[0])
        for n in range(int(2 * account.entries_a_day * chance[0] + chance[1]))
    ]
    return tuple(
        _entry(seed, account, day=day, number=n, family=family, is_today=day == today)
        for n, family in enumerate(families)
    )


def newest_first(seed: int, account: BankAccount, *, start: dt.date, end: dt.date, today: dt.date) -> Iterator[Entry]:
    """Yield the entries of a range of days (both included), drawn lazily, newest day first."""
    day = min(end, today)
    while day >= start:
        yield from entries_on(seed, account, day=day, today=today)
        day -= _ONE_DAY


def closing_cents(seed: int, account: BankAccount, *, today: dt.date) -> int:
    """Sum up the balance at the close of yesterday: the opening amount and `BALANCE_DAYS` days of entries."""
    start = today - dt.timedelta(days=BALANCE_DAYS)
    told = newest_first(seed, account, start=start, end=today - _ONE_DAY, today=today)
    return account.opening_cents + sum(entry.cents for entry in told)


def _falls_on(day_of_month: int, day: dt.date) -> bool:
    due = day.replace(day=day_of_month)
    while due.weekday() >= 5:
        due += _ONE_DAY
    return due == day


def _everyday_family(unit: float) -> Family:
    for family, share in EVERYDAY:
        if unit < share:
            return family
        unit -= share
    return EVERYDAY[-1][0]


def _entry(seed: int, account: BankAccount, *, day: dt.date, number: int, family: Family, is_today: bool) -> Entry:
    subject = (account.account_id, day, number)
    chance = units(seed, "entry", *subject)
    party = _party(seed, account, family=family, unit=chance[0])
    is_card = party.merchant_code is not None
    cents = max(1, round(100 * party.amount.at(chance[1])))
    traded_on = day - dt.timedelta(days=int(chance[2] * 3)) if is_card else day
    return Entry(
        reference=f"{day:%Y%m%d}{number:03d}{token(seed, 'reference', *subject, digits=7)}",
        day=day,
        traded_on=traded_on,
        cents=cents if family.incoming else -cents,
        family=family,
        party=party,
        party_iban=None if is_card else _party_iban(seed, party),
        lines=_lines(seed, subject, party=party, traded_on=traded_on),
        shown_from_ask=int(chance[3] * 3) if is_today else 0,
    )


def _party(seed: int, account: BankAccount, *, family: Family, unit: float) -> Party:
    # Who is employed, or paid by standing order, does not change from month to month.
    is_monthly = any(family is monthly for _, monthly in MONTHLY)
    payee_unit = units(seed, "payee", account.account_id, family.label)[0]
    return choose(family.parties, payee_unit if is_monthly else unit)


def _party_iban(seed: int, party: Party) -> str:
    bank_code = choose(BANKS, units(seed, "party", party.name)[0])[2]
    return iban(bank_code, token(seed, "party", party.name, digits=10))


def _lines(seed: int, subject: tuple[str, dt.date, int], *, party: Party, traded_on: dt.date) -> tuple[str, ...]:
    number = token(seed, "purpose", *subject, digits=6)
    date_parts = {"day": f"{traded_on:%d}", "month": f"{traded_on:%m}", "year": f"{traded_on:%Y}"}
    purpose = party.purpose.format(nr=number, **date_parts)
    if party not in DIRECT_DEBIT.parties:
        return (purpose,)
    creditor = token(seed, "creditor", party.name, digits=11)
    mandate = token(seed, "mandate", subject[0], party.name, digits=8)
    return (purpose, f"EREF+{number}", f"MREF+M{mandate}", f"CRED+DE{creditor[:2]}ZZZ{creditor}")

"""Accounts and their German statements."""

import datetime as dt
from uuid import UUID

import pytest

from nightshift.world.bank import (
    BankAccount,
    Entry,
    closing_cents,
    entries_on,
    iban,
    newest_first,
    open_account,
)
from nightshift.world.texts import MONTHLY

SEED = 7
TODAY = dt.date(2026, 11, 30)
ACCOUNTS = [open_account(SEED, str(UUID(int=number))) for number in range(40)]


def statement(account: BankAccount, days: int) -> list[Entry]:
    return list(newest_first(SEED, account, start=TODAY - dt.timedelta(days), end=TODAY, today=TODAY))


def test_an_iban_passes_the_check_of_iso_13616() -> None:
    known = iban("37040044", "0532013000")
    assert known == "DE89370400440532013000"
    for account in ACCOUNTS:
        assert len(account.iban) == 22
        assert int(account.iban[4:] + "1314" + account.iban[2:4]) % 97 == 1


def test_an_account_is_the_same_whenever_it_is_opened() -> None:
    assert open_account(SEED, ACCOUNTS[3].account_id) == ACCOUNTS[3]
    assert open_account(SEED + 1, ACCOUNTS[3].account_id) != ACCOUNTS[3]


def test_a_day_has_the_same_entries_whatever_range_is_asked_for() -> None:
    day = dt.date(2026, 11, 12)
    for account in ACCOUNTS:
        alone = list(newest_first(SEED, account, start=day, end=day, today=TODAY))
        assert alone == [entry for entry in statement(account, 60) if entry.day == day]


def test_references_are_unique_inside_an_account_and_days_run_backwards() -> None:
    for account in ACCOUNTS:
        entries = statement(account, 90)
        assert len({entry.reference for entry in entries}) == len(entries) > 0
        assert [entry.day for entry in entries] == sorted((entry.day for entry in entries), reverse=True)


def test_nothing_is_booked_on_weekends_or_in_the_future() -> None:
    for account in ACCOUNTS:
        tomorrow = TODAY + dt.timedelta(days=5)
        entries = list(newest_first(SEED, account, start=TODAY, end=tomorrow, today=TODAY))
        assert all(entry.day == TODAY for entry in entries)
        assert all(entry.day.weekday() < 5 for entry in statement(account, 90))


@pytest.mark.parametrize("month", [10, 11])
def test_rent_tax_and_wages_are_booked_once_a_month_on_a_working_day(month: int) -> None:
    for account in ACCOUNTS[:10]:
        booked = [entry.family for entry in statement(account, 90) if entry.day.month == month]
        for _, family in MONTHLY:
            assert booked.count(family) == 1


def test_who_is_paid_every_month_stays_the_same() -> None:
    monthly = [family for _, family in MONTHLY]
    for account in ACCOUNTS[:10]:
        payees = {(e.family.label, e.party.name) for e in statement(account, 120) if e.family in monthly}
        assert len(payees) == len(monthly)


def test_signs_follow_the_kind_and_texts_are_german() -> None:
    entries = [entry for account in ACCOUNTS for entry in statement(account, 30)]
    assert all((entry.cents > 0) == entry.family.incoming for entry in entries)
    assert {"LASTSCHRIFT", "GUTSCHRIFT", "KARTENZAHLUNG"} <= {entry.family.label for entry in entries}
    text = " ".join(line for entry in entries for line in (entry.party.name, *entry.lines))
    assert {"ä", "ö", "ü", "ß"} <= set(text)
    assert "MREF+" in text
    assert "{" not in text


def test_yesterdays_balance_is_the_opening_amount_and_what_was_booked_since() -> None:
    account = ACCOUNTS[5]
    booked = [entry.cents for entry in statement(account, 30) if entry.day < TODAY]
    assert closing_cents(SEED, account, today=TODAY) == account.opening_cents + sum(booked)


def test_only_entries_of_today_come_in_during_the_night() -> None:
    late = [entry for account in ACCOUNTS for entry in statement(account, 30) if entry.shown_from_ask > 0]
    assert late
    assert {entry.day for entry in late} == {TODAY}
    assert not any(e.shown_from_ask for a in ACCOUNTS for e in entries_on(SEED, a, day=TODAY, today=dt.date.max))

from datetime import date
from decimal import Decimal

import pytest

from nightshift.documents.printed_numbers import amounts_in, dates_in, has_time


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("EUR 48,62", ["48.62"]),
        ("34,00 EUR A", ["34.00"]),
        ("€1,95A", ["1.95"]),
        ("1.245,00 €", ["1245.00"]),
        ("12.345.678,90", ["12345678.90"]),
        ("1.009.68", ["1009.68"]),  # the comma was read as a point
        ("9.92", ["9.92"]),
        ("0,35C", ["0.35"]),
        ("1O,5O EUR", ["10.50"]),  # letters for noughts
        ("2,l9", ["2.19"]),
        ("5 ,99", ["5.99"]),
        ("-8,10", ["-8.10"]),
        ("6,59  0,46  7,05", ["6.59", "0.46", "7.05"]),
        ("A=19,00%", []),
        ("MwSt 19,00 %", []),
        ("1,499 EUR/l", []),
        ("Säule 3  59,08 l", []),
        ("03.11.2026 12,50", ["12.50"]),
        ("03.11.26", []),
        ("9.00 Uhr - 20.00 Uhr", []),
        ("16:14:51 Uhr", []),
        ("Tel. 05251/68 9080", []),
        ("", []),
    ],
)
def test_amounts_are_found_in_the_forms_of_german_paper(text: str, amounts: list[str]) -> None:
    assert amounts_in(text) == tuple(Decimal(amount) for amount in amounts)


@pytest.mark.parametrize(
    "text",
    [
        "03.11.2026",
        "03.11.26",
        "3.11.2026",
        "2026-11-03",
        "3. November 2026",
        "03. Nov. 2026",
        "3. Novernber 2026",  # rn for m
        "3. N0vember 2026",
        "O3.ll.2O26",
        "03,11,2026",
        "03. 11. 2026",
        "03/11/2026",
        "03.11.202616:07",  # glued to the time
        "03.11.2616:07",
        "Datum:03.11.26 Uhrzeit:17:36:12",
        "TSE 2026-11-03T11:22:33.000Z",
    ],
)
def test_a_date_is_found_in_every_form_that_is_printed_or_misread(text: str) -> None:
    assert dates_in(text) == (date(2026, 11, 3),)


@pytest.mark.parametrize(
    "text", ["31.02.2026", "12.13.2026", "Tel. 0520.12.34567", "1.234,56", "UID DE123456789", "Seite 1 von 2", ""]
)
def test_what_is_no_date_is_not_taken_for_one(text: str) -> None:
    assert dates_in(text) == ()


def test_several_dates_come_in_the_order_of_the_text() -> None:
    assert dates_in("vom 01.02.2026 bis 3. März 2026") == (date(2026, 2, 1), date(2026, 3, 3))


@pytest.mark.parametrize(("text", "seen"), [("14:38", True), ("9.15 Uhr", True), ("12,50", False), ("03.11.26", False)])
def test_a_time_of_day_is_seen(text: str, seen: bool) -> None:
    assert has_time(text) is seen

"""The three rules, on lines laid out by hand: traps, misreadings, and paper that lacks a fact."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal

import pytest

from nightshift.documents.extraction import extract
from nightshift.documents.text_lines import TextLine

Paper = Callable[..., tuple[TextLine, ...]]

TILL = (
    "Bäckerei Müller",
    "Hauptstraße 12",
    "50667 Köln",
    "Brötchen|1,20 A",
    "Torte|38,80 A",
    "SUMME|EUR 40,00",
    "Gegeben BAR|50,00",
    "Rückgeld|10,00",
    "Netto|37,38",
    "MwSt 7%|2,62",
    "03.11.2026  14:38",
)


def test_a_till_receipt_gives_all_three_facts(paper: Paper) -> None:
    found = extract(paper(*TILL))
    assert found.vendor is not None
    assert found.date is not None
    assert found.total is not None
    assert (found.vendor.value, found.date.value, found.total.value) == (
        "Bäckerei Müller",
        date(2026, 11, 3),
        Decimal("40.00"),
    )
    assert "SUMME" in found.total.reason
    assert found.confidence == pytest.approx(0.99)


@pytest.mark.parametrize(
    ("rows", "total"),
    [
        (("Brot|3,00", "Zu zahlen|3,00", "Bar|50,00", "Zurück|47,00"), "3.00"),
        (("Zwischensumme|90,00", "MwSt 19 %|17,10", "Gesamtsumme|EUR 107,10"), "107.10"),
        (("Nettobetrag|1.000,00 €", "enthaltene 19 % MwSt|190,00 €", "Gesamtbetrag|1.190,00 €"), "1190.00"),
        (("Artikel|Menge|Preis|Summe", "Kabel|2|4,00|8,00", "Gesamtsumme|8,00"), "8.00"),
        (("Gesantbetrag|34,00 EUR", "Betrag:|EUR 34,00"), "34.00"),
        (("zu zahlen|15,69", "MWST%|MWST|Netto|Brutto", "Summe|1,61|14,08|15,69"), "15.69"),
        (("SUMME", "19,46", "MasterCard|EUR 19,46"), "19.46"),
        (("SUMME|EUR", "GEGEBEN|20,00", "Kartenzahlung|19,99"), "19.99"),
        (("Einwurf|10,00", "Rückgeld|2,50", "Betrag|7,50 €"), "7.50"),
        (("Trinkgeld|5,00", "Total|45,00"), "45.00"),
        (("Kaffee|2,40", "Kuchen|3,60", "6,00"), "6.00"),
    ],
)
def test_the_total_is_the_sum_to_pay_and_no_other_amount(paper: Paper, rows: tuple[str, ...], total: str) -> None:
    found = extract(paper(*rows)).total
    assert found is not None
    assert found.value == Decimal(total)


def test_cash_less_change_decides_between_two_rows_of_one_rank(paper: Paper) -> None:
    found = extract(paper("Summe|12,00", "Summe|21,00", "Gegeben|50,00", "Rückgeld|29,00")).total
    assert found is not None
    assert found.value == Decimal("21.00")


def test_a_fallback_says_so_and_is_less_certain(paper: Paper) -> None:
    found = extract(paper("Kaffee|2,40", "6,00")).total
    assert found is not None
    assert "no word for a total" in found.reason
    assert found.score < 0.5


@pytest.mark.parametrize(
    ("rows", "day"),
    [
        (("Bestelldatum|01.11.2026", "Rechnungsdatum|03.11.2026"), date(2026, 11, 3)),
        (("Rechnungsdatum: 3. November 2026", "zahlbar bis 17.11.2026"), date(2026, 11, 3)),
        (("Einfahrt|02.11.26  09:03", "Bezahlt am|03.11.26  14:03"), date(2026, 11, 3)),
        (("Aktion vom 28.01.2026", "03.11.2026 15:56 Bed. 120"), date(2026, 11, 3)),
        (("Lieferdatum 30.10.2026", "Köln, 03.11.2026"), date(2026, 11, 3)),
        (("gültig bis 12.12.2028",), date(2028, 12, 12)),  # better than none
    ],
)
def test_the_date_is_the_day_of_issue(paper: Paper, rows: tuple[str, ...], day: date) -> None:
    found = extract(paper(*rows)).date
    assert found is not None
    assert found.value == day


@pytest.mark.parametrize(
    ("rows", "large", "vendor"),
    [
        (("Gasthaus Löwen", "Lindenstraße 5, 50667 Köln", "Rechnung Nr. 7"), (0,), "Gasthaus Löwen"),
        (("Herzlich willkommen", "Drogerie Weiß", "Am Markt 1", "EUR"), (1,), "Drogerie Weiß"),
        (("RECHNUNG", "Elektro Schäfer e.K.", "Ringstraße 3"), (), "Elektro Schäfer e.K."),
        (("FRISCHE FÜR SIE!", "Marktkauf Lehr", "Detmolder Str. 4"), (0,), "Marktkauf Lehr"),
        (("TANK-CENTER LINDNER", "Hauptstrasse 58", "99084 Erfurt"), (), "TANK-CENTER LINDNER"),
    ],
)
def test_the_vendor_is_the_name_and_no_heading_address_or_slogan(
    paper: Paper, rows: tuple[str, ...], large: tuple[int, ...], vendor: str
) -> None:
    found = extract(paper(*rows, large=large)).vendor
    assert found is not None
    assert found.value == vendor


def test_the_buyer_in_the_address_field_is_not_the_vendor(paper: Paper) -> None:
    rows = ("Malerbetrieb Kühn GmbH", "Südring 1 · 10117 Berlin", "Fröhlich & Partner GbR", "z. Hd. Frau Jürgens")
    found = extract(paper(*rows, large=(0,))).vendor
    assert found is not None
    assert found.value == "Malerbetrieb Kühn GmbH"


def test_paper_without_facts_gives_none_of_them_and_no_confidence(paper: Paper) -> None:
    for lines in ((), paper("##", "12")):
        found = extract(lines)
        assert (found.vendor, found.date, found.total, found.confidence) == (None, None, None, 0)


def test_a_receipt_without_a_total_still_gives_vendor_and_date(paper: Paper) -> None:
    found = extract(paper("Bäckerei Müller", "Hauptstraße 12", "03.11.2026"))
    assert found.total is None
    assert found.vendor is not None
    assert found.date is not None

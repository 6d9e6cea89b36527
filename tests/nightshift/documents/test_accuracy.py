from datetime import date
from decimal import Decimal

import pytest

from nightshift.documents.accuracy import Facts, Verdict, judge, rates_of, same_vendor
from nightshift.documents.folding import fold, fold_vendor, has_legal_form

TRUTH = Facts(vendor="Bäckerei Müller GmbH", date=date(2026, 11, 3), total=Decimal("12.50"))


@pytest.mark.parametrize(
    ("text", "folded"), [("Bäckerei GROSS & Söhne", "baeckerei gross soehne"), ("Straße", "strasse"), ("  ", "")]
)
def test_folding_leaves_lower_case_words(text: str, folded: str) -> None:
    assert fold(text) == folded


@pytest.mark.parametrize(
    "name", ["Löffler GmbH & Co. KG", "LOEFFLER", "löffler e.K.", "Löffler UG (haftungsbeschränkt)"]
)
def test_a_vendor_folds_to_the_same_whatever_its_legal_form(name: str) -> None:
    assert fold_vendor(name) == "loeffler"


def test_a_name_that_is_a_legal_form_only_does_not_vanish() -> None:
    assert fold_vendor("AG") == "ag"


@pytest.mark.parametrize(
    ("text", "has"), [("Kühn GmbH", True), ("Kühn e.K.", True), ("Kühn", False), ("Agentur", False)]
)
def test_legal_forms_are_recognised_as_words(text: str, has: bool) -> None:
    assert has_legal_form(text) is has


def test_one_wrong_letter_passes_and_another_firm_does_not() -> None:
    assert same_vendor("BAECKEREI MULLER", "Bäckerei Müller GmbH")
    assert not same_vendor("Bäckerei Köhler", "Bäckerei Müller")
    assert not same_vendor("Müller", "Bäckerei Müller")


@pytest.mark.parametrize(
    ("read", "verdict"),
    [
        (TRUTH, Verdict(vendor=True, date=True, total=True)),
        (Facts(vendor=None, date=None, total=None), Verdict(vendor=False, date=False, total=False)),
        (
            Facts(vendor="Bäckerei Müller", date=date(2026, 11, 4), total=Decimal("12.5")),
            Verdict(vendor=True, date=False, total=True),
        ),
    ],
)
def test_each_fact_is_judged_by_itself(read: Facts, verdict: Verdict) -> None:
    assert judge(read, TRUTH) == verdict


def test_rates_are_ratios_over_all_receipts_and_zero_over_none() -> None:
    rates = rates_of([Verdict(vendor=True, date=True, total=False), Verdict(vendor=False, date=True, total=False)])
    assert (rates.count, rates.vendor_ratio, rates.date_ratio, rates.total_ratio) == (2, 0.5, 1.0, 0.0)
    assert rates_of([]).total_ratio == 0
    assert "2 receipts: vendors 50%" in str(rates)

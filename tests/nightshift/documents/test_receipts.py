from datetime import datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from nightshift.documents.lettering import FixedPitch, PlainAscii, Rubik, Typeface
from nightshift.documents.pixels import Pixels
from nightshift.documents.receipt import Condition, DateStyle, Layout, Receipt, german_amount, german_date
from nightshift.documents.receipt_content import random_receipt
from nightshift.documents.receipts import draw_receipt, random_receipts

BERLIN = ZoneInfo("Europe/Berlin")
TODAY = datetime(2026, 11, 30, 1, 30, tzinfo=BERLIN)


def one(layout: Layout, condition: Condition = Condition.CLEAN, seed: str = "one") -> Receipt:
    return random_receipt(seed, layout=layout, condition=condition, today=TODAY)


def drawn(face: Typeface, text: str) -> Pixels:
    paper = np.full((60, 80), 255, np.uint8)
    face.draw(paper, text, at=(10, 40), size=30, ink=0)
    return paper


@pytest.mark.parametrize("character", list("äöüÄÖÜß€–·"))
def test_the_typeface_has_every_german_character(character: str) -> None:
    missing = drawn(Rubik(), "\ue000")
    glyph = drawn(Rubik(), character)
    assert glyph.min() < 128
    assert not np.array_equal(glyph, missing)
    assert not np.array_equal(glyph, drawn(Rubik(), "?"))


@pytest.mark.parametrize("face", [Rubik(), FixedPitch(face=Rubik()), PlainAscii()])
def test_a_text_is_drawn_about_as_wide_as_it_says(face: Typeface) -> None:
    paper = np.full((80, 900), 255, np.uint8)
    face.draw(paper, "Größe 12,00", at=(10, 50), size=30, ink=0)
    columns = np.flatnonzero(paper.min(axis=0) < 128)
    assert columns[-1] - columns[0] == pytest.approx(face.width("Größe 12,00", 30), rel=0.1)


@pytest.mark.parametrize("layout", list(Layout))
@pytest.mark.parametrize("condition", list(Condition))
def test_the_same_receipt_is_drawn_with_the_same_pixels(layout: Layout, condition: Condition) -> None:
    first, second = (np.asarray(draw_receipt(one(layout, condition))) for _ in range(2))
    assert np.array_equal(first, second)
    assert first.min() < 170 < first.max()


def test_six_layouts_are_six_shapes_of_paper() -> None:
    assert len({draw_receipt(one(layout)).size for layout in Layout}) == 6


def test_a_faded_receipt_has_less_contrast_and_a_tilted_one_is_larger() -> None:
    clean, tilted, faded = (np.asarray(draw_receipt(one(Layout.FUEL, condition))) for condition in Condition)
    assert np.percentile(faded, 0.5) > np.percentile(clean, 0.5) + 60
    assert tilted.shape > clean.shape


def test_eighteen_receipts_show_each_layout_in_each_condition() -> None:
    receipts = tuple(random_receipts(1, 18, today=TODAY))
    assert len({(receipt.layout, receipt.condition) for receipt in receipts}) == 18


def test_another_seed_gives_other_receipts_and_more_of_them_change_none() -> None:
    three, ten = tuple(random_receipts(1, 3, today=TODAY)), tuple(random_receipts(1, 10, today=TODAY))
    assert ten[:3] == three
    assert tuple(random_receipts(2, 3, today=TODAY)) != three


def test_receipts_are_of_the_last_ninety_days_and_cost_something() -> None:
    for receipt in random_receipts(5, 60, today=TODAY):
        assert TODAY - timedelta(days=91) < receipt.paid_at < TODAY
        assert receipt.total > 0
        assert receipt.given is None or receipt.given > receipt.total


def test_net_and_vat_of_all_rates_add_up_to_the_total() -> None:
    for receipt in random_receipts(5, 60, today=TODAY):
        assert sum((net + vat for _, net, vat in receipt.vat_lines()), start=Decimal(0)) == receipt.total


@pytest.mark.parametrize(("amount", "text"), [("1234567.8", "1.234.567,80"), ("0.5", "0,50"), ("12", "12,00")])
def test_amounts_are_written_as_germans_do(amount: str, text: str) -> None:
    assert german_amount(Decimal(amount)) == text


def test_dates_are_written_in_four_styles() -> None:
    written = [german_date(datetime(2026, 3, 1, tzinfo=BERLIN), style) for style in DateStyle]
    assert written == ["01.03.2026", "01.03.26", "2026-03-01", "1. März 2026"]

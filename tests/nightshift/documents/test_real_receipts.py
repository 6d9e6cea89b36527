"""Six of 18 real German receipts (softmatic/vision-data, CC-BY-4.0), where they lie beside the repository.

All 18 were measured while the rules were made: vendors 15, dates 17, totals 18. The floor here is well below, since
no rule is to be tuned to these.
"""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from nightshift.documents.accuracy import Facts, Verdict, rates_of
from nightshift.documents.folding import fold_vendor
from nightshift.documents.reading import ReceiptReader, ReceiptReading

_FOLDER = Path(__file__).parents[3].parent / "shared" / "data" / "receipts-de"
_COUNT = 6


def truth_of(path: Path) -> Facts:
    """Read MERCHANT_DDMMYYYY[_NUMITEMS]_AMOUNT out of the file's name; the amount is in cents."""
    merchant, day, *_, cents = path.stem.removesuffix("_B").split("_")
    return Facts(vendor=merchant, date=date(int(day[4:]), int(day[2:4]), int(day[:2])), total=Decimal(int(cents)) / 100)


def verdict(reading: ReceiptReading, truth: Facts) -> Verdict:
    """A merchant's short name need only be a part of what was read."""
    return Verdict(
        vendor=fold_vendor(truth.vendor or "") in fold_vendor(reading.vendor or ""),
        date=reading.date == truth.date,
        total=reading.total == truth.total,
    )


def test_real_receipts_are_read_well_enough(reader: ReceiptReader) -> None:
    paths = sorted(_FOLDER.glob("*.jpg"))
    if not paths:
        pytest.skip("the 18 real receipts are not there; put them into ../shared/data/receipts-de")
    chosen = paths[:: len(paths) // _COUNT][:_COUNT]
    rates = rates_of([verdict(reader.read(path), truth_of(path)) for path in chosen])
    print(f"real receipts: {rates}")  # noqa: T201  # the rates are what one wants to see
    assert rates.total_ratio >= 0.65, rates
    assert rates.date_ratio >= 0.65, rates
    assert rates.vendor_ratio >= 0.5, rates

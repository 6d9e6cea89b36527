"""Vendor, date and total out of the text lines of one receipt: pure rules, each with its reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from nightshift.documents.date_rule import date_of
from nightshift.documents.found import Found
from nightshift.documents.text_lines import TextLine, rows_of
from nightshift.documents.total_rule import total_of
from nightshift.documents.vendor_rule import vendor_of


@dataclass(frozen=True, kw_only=True)
class Extraction:
    """What the rules found, each part with its reason; None where the paper does not show it."""

    vendor: Found[str] | None
    date: Found[date] | None
    total: Found[Decimal] | None

    @property
    def confidence(self) -> float:
        """Mean of the three scores, 0 to 1; a missing part counts as 0."""
        return sum(part.score for part in (self.vendor, self.date, self.total) if part is not None) / 3


def extract(lines: Sequence[TextLine]) -> Extraction:
    """Find vendor, date and total in the recognised lines of one receipt.

    Args:
        lines: In any order; boxes in the pixels of one image, tilted by a few degrees at most.
    """
    rows = rows_of(lines)
    return Extraction(vendor=vendor_of(rows), date=date_of(rows), total=total_of(rows))

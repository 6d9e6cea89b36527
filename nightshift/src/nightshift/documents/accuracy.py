"""How good the readings are: each compared with what was truly printed."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from nightshift.documents.folding import fold_vendor

VENDOR_SIMILARITY = 0.9
"""Two folded names this alike (Ratcliff/Obershelp, 0 to 1) are one vendor: one wrong letter in ten passes."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The three facts of a receipt, as printed or as read; None where not read."""

    vendor: str | None
    date: date | None
    total: Decimal | None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Which of the three facts were read right."""

    vendor: bool
    date: bool
    total: bool


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Ratios of right facts over `count` receipts, each 0 to 1."""

    count: int
    vendor_ratio: float
    date_ratio: float
    total_ratio: float

    def __str__(self) -> str:
        return (
            f"{self.count} receipts: vendors {self.vendor_ratio:.0%}, dates {self.date_ratio:.0%}, "
            f"totals {self.total_ratio:.0%}"
        )


def judge(read: Facts, truth: Facts) -> Verdict:
    """Compare a reading with the truth: date and total exactly, the vendor by `same_vendor`."""
    return Verdict(
        vendor=read.vendor is not None and truth.vendor is not None and same_vendor(read.vendor, truth.vendor),
        date=read.date is not None and read.date == truth.date,
        total=read.total is not None and read.total == truth.total,
    )


def same_vendor(one: str, other: str) -> bool:
    """Tell whether two names mean one firm: folded (umlauts, case, legal form, spaces), then alike enough."""
    return difflib.SequenceMatcher(None, fold_vendor(one), fold_vendor(other)).ratio() >= VENDOR_SIMILARITY


def rates_of(verdicts: Iterable[Verdict]) -> Rates:
    """Sum verdicts up; over none at all every ratio is 0."""
    judged = tuple(verdicts)
    count = max(1, len(judged))
    return Rates(
        count=len(judged),
        vendor_ratio=sum(one.vendor for one in judged) / count,
        date_ratio=sum(one.date for one in judged) / count,
        total_ratio=sum(one.total for one in judged) / count,
    )

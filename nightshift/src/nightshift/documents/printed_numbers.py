"""Amounts and dates out of recognised text, in the forms that German paper uses."""

import difflib
import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

from nightshift.documents.folding import fold
from nightshift.documents.receipt import MONTHS

# What a recogniser takes for a digit, and which digit it was.
_AS_DIGIT = str.maketrans("OoQDCIl|SsBZ", "000001115582")
_AS_LETTER = str.maketrans("0158", "olsb")
_D = r"[0-9OoQDCIl|SsBZ]"

_AMOUNT = re.compile(
    rf"(?<![\w.,/])(?P<minus>-\s?)?(?P<whole>\d{{1,3}}(?:[.,]\s?\d{{3}})+|\d{_D}{{0,5}}|[OoQ])\s?[.,]\s?(?P<cents>{_D}{{2}})"
    r"(?![\d])(?!\s?[.,:]\s?\d)(?!\s?%)(?!\s?(?:kg|l|L|g|m)\b)(?!\s?(?:EUR|€)?\s?/)"
)
_LONE_MINUS = re.compile(r"^\s*-\s*$")

_NUMERIC_DATE = re.compile(
    rf"(?<![\w.,])(?P<day>[0-3OoIl|]?{_D})\s?[.,/]\s?(?P<month>[01OoIl|]?{_D})\s?[.,/]\s?"
    rf"(?P<year>{_D}{{2}}(?=\d\d:\d\d)|2[0OoQ]{_D}{{2}}|{_D}{{2}}(?![\w.,]\d|{_D}))"
)
_ISO_DATE = re.compile(
    rf"(?<![\w.,])(?P<year>2[0OoQ]{_D}{{2}})\s?[-–]\s?(?P<month>[01OoIl|]{_D})\s?[-–]\s?(?P<day>[0-3OoIl|]{_D})"
)
_LONG_DATE = re.compile(
    rf"(?<![\w.,])(?P<day>[0-3OoIl|]?{_D})\s?[.,]?\s?(?P<month>[^\W_]{{3,9}})\.?\s?(?P<year>2[0OoQ]{_D}{{2}})"
)
_MONTH_BY_NAME = {fold(name): number for number, name in enumerate(MONTHS, start=1)}
_MONTH_BY_PREFIX = {name[:3]: number for name, number in _MONTH_BY_NAME.items()}
_TIME = re.compile(r"\b\d{1,2}[:.]\d{2}(?::\d{2})?\s?Uhr|\b\d{1,2}:\d{2}(?::\d{2})?")


def amounts_in(text: str) -> tuple[Decimal, ...]:
    """Find amounts of money, left to right: "1.234,56", "12.50 EUR", "€ 1,9O"; comma and point may swap.

    Not taken: parts of dates and times, percentages, litres and kilogrammes, prices by the litre.
    """
    bare = _TIME.sub(" ", text)
    for pattern in (_ISO_DATE, _NUMERIC_DATE, _LONG_DATE):
        bare = pattern.sub(lambda match: " " if _as_date(match) else match.group(), bare)
    return tuple(_as_amount(match) for match in _AMOUNT.finditer(bare))


def dates_in(text: str) -> tuple[date, ...]:
    """Find dates of the years 2000 to 2099: 03.11.2026, 03.11.26, 2026-11-03, 3. November 2026."""
    found = [
        (match.start(), day)
        for pattern in (_ISO_DATE, _NUMERIC_DATE, _LONG_DATE)
        for match, day in _dated(pattern, text)
    ]
    return tuple(day for _, day in sorted(found))


def has_time(text: str) -> bool:
    """Tell whether a time of day is printed, as a till does next to the date."""
    return _TIME.search(text) is not None


def _as_amount(match: re.Match[str]) -> Decimal:
    digits = re.sub(r"\D", "", match["whole"].translate(_AS_DIGIT))
    value = Decimal(f"{digits}.{match['cents'].translate(_AS_DIGIT)}")
    return -value if match["minus"] else value


def _dated(pattern: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], date]]:
    for match in pattern.finditer(text):
        day = _as_date(match)
        if day is not None:
            yield match, day


def _as_date(match: re.Match[str]) -> date | None:
    month = _month_number(match["month"])
    day, year = match["day"].translate(_AS_DIGIT), match["year"].translate(_AS_DIGIT)
    if month is None or not (day.isdigit() and year.isdigit()):
        return None
    try:
        return date(int(year) + (2000 if len(year) == 2 else 0), month, int(day))
    except ValueError:  # the 31st of June is an answer, not a failure
        return None


def _month_number(text: str) -> int | None:
    digits = text.translate(_AS_DIGIT)
    if digits.isdigit():
        return int(digits)
    folded = fold(text.translate(_AS_LETTER))
    if folded[:3] in _MONTH_BY_PREFIX and len(folded) <= 4:
        return _MONTH_BY_PREFIX[folded[:3]]
    close = difflib.get_close_matches(folded, _MONTH_BY_NAME, n=1, cutoff=0.75)
    return _MONTH_BY_NAME[close[0]] if close else None

"""Which amount on a receipt is the one that was paid."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from nightshift.documents.folding import fold
from nightshift.documents.found import Found
from nightshift.documents.printed_numbers import amounts_in
from nightshift.documents.text_lines import Row, below

# Rows that name another amount, though a word for the total may stand in them as well.
_OTHER = re.compile(
    r"zwischensumme|zw summe|netto|mwst|mwsl|mehrwert|ust\b|umsatzst|steuer|gegeben|erhalten|rue?ckgeld|"
    r"zurue?ck|wechselgeld|trinkgeld|rabatt|gespart|einwurf|umsatz|guthaben|punkte|einzelpreis|uebertrag"
)
_TO_PAY = re.compile(r"gesa[mn]tbetrag|gesamtsumme|endbetrag|endsumme|rechnungsbetrag|zahlbetrag|zu zahlen|zahlender")
_SUM = re.compile(r"\bsu[mn]me|\bgesamt\b|\btotal\b|\bfaelliger betrag")
_AMOUNT = re.compile(r"\bb[ea]trag\b|brutto")
_PAID = re.compile(
    r"kartenzahlung|girocard|mastercard|\bvisa\b|ec karte|ec cash|kreditkarte|lastschrift|paypal|\bbar\b"
)
# A row that says it is the sum to pay beats one that says how it was paid.
_RANKED = ((4, _TO_PAY), (3, _SUM), (2, _AMOUNT), (1, _PAID))
_HEADING = re.compile(r"\bmenge\b|artikel|bezeichnung|\bpreis|\bpos\b")
_ONLY_LABEL = re.compile(r"[^\d]{3,24}")


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    amount: Decimal
    rank: int
    support: int
    height: float
    row: Row


def total_of(rows: Sequence[Row]) -> Found[Decimal] | None:
    """Choose the total in EUR, or None where no row holds an amount above zero.

    In order: the strongest word for a total in the same row (or alone right above the amount); how many
    other rows bear the amount out (again as card payment, or as cash given less change); the larger type.
    With no such word anywhere: the largest amount that is not of another kind.
    """
    candidates = tuple(_candidates(rows))
    if not candidates:
        return _largest(rows)
    best = max(candidates, key=lambda one: (one.rank, one.support, one.height))
    reason = f"in the row “{best.row.text}”, borne out by {best.support} other rows"
    return Found(value=best.amount, reason=reason, score=min(cell.score for cell in best.row.cells))


def _candidates(rows: Sequence[Row]) -> Iterator[_Candidate]:
    support = _support(rows)
    for row in rows:
        rank, amounts = _rank(row), _amounts(row)
        if rank and not amounts and _ONLY_LABEL.fullmatch(row.text) and not _HEADING.search(fold(row.text)):
            lower = below(rows, row)
            amounts = _amounts(lower) if lower and not _is_other(lower) else ()
        if rank and amounts and amounts[-1] > 0:
            amount = amounts[-1]
            yield _Candidate(amount=amount, rank=rank, support=support.get(amount, 0), height=row.height, row=row)


def _support(rows: Sequence[Row]) -> dict[Decimal, int]:
    """Count for each amount the rows that hold it, and cash given less change where it is the outcome."""
    counts: dict[Decimal, int] = {}
    for row in rows:
        for amount in {abs(amount) for amount in _amounts(row)}:
            counts[amount] = counts.get(amount, -1) + 1
    paid = _cash_less_change(rows)
    return counts if paid is None else counts | {paid: counts.get(paid, 0) + 2}


def _cash_less_change(rows: Sequence[Row]) -> Decimal | None:
    given = _first_amount(rows, re.compile(r"gegeben|erhalten|einwurf|^bar\b|bargeld"))
    change = _first_amount(rows, re.compile(r"rue?ckgeld|zurue?ck|wechselgeld"))
    return given - change if given and change and given > change else None


def _first_amount(rows: Sequence[Row], words: re.Pattern[str]) -> Decimal | None:
    return next((abs(_amounts(row)[-1]) for row in rows if words.search(fold(row.text)) and _amounts(row)), None)


def _largest(rows: Sequence[Row]) -> Found[Decimal] | None:
    """Fall back on the largest amount of a row that does not name another kind of amount."""
    plain = [(amount, row) for row in rows if not _is_other(row) for amount in _amounts(row) if amount > 0]
    if not plain:
        return None
    amount, row = max(plain, key=lambda entry: entry[0])
    reason = f"no word for a total; the largest amount, in the row “{row.text}”"
    return Found(value=amount, reason=reason, score=0.5 * min(cell.score for cell in row.cells))


def _rank(row: Row) -> int:
    if _is_other(row):
        return 0
    folded = fold(row.text)
    return next((rank for rank, words in _RANKED if words.search(folded)), 0)


def _is_other(row: Row) -> bool:
    return _OTHER.search(fold(row.text)) is not None


def _amounts(row: Row) -> tuple[Decimal, ...]:
    return tuple(amount for phrase in row.phrases for amount in amounts_in(phrase.text))

"""Which text at the top of a receipt is the vendor's name."""

import re
from collections.abc import Sequence

from nightshift.documents.folding import fold, fold_vendor, has_legal_form
from nightshift.documents.found import Found
from nightshift.documents.printed_numbers import amounts_in, dates_in
from nightshift.documents.text_lines import Row, TextLine, median_height

_TOP_ROWS = 9  # a name stands above the goods; letterheads need no more than this
_ADDRESS = re.compile(
    r"str(?:asse|\.)?\s*\d|strasse\b|\d{5}\s+\w|platz \d|weg \d|allee \d|ring \d|\btel\b|telefon|\bfax\b|www|"
    r"http|\bust\b|steuer ?n|steuer id|\buid\b|\bid nr\b|\bust id"
)
_HEADING = re.compile(
    r"rechnung|quittung|beleg|kassenbon|\bbon\b|datum|kunden|tisch|kasse\b|\beur\b|artikel|filiale|\buhr\b|"
    r"\bz hd\b|herzlich|willkommen|oeffnungszeiten|sehr geehrte|tankstellen nr|\bmenge\b"
)
_TRADE = re.compile(
    r"markt|baeckerei|metzgerei|apotheke|tankstelle|autohof|gasthaus|gasthof|restaurant|cafe|drogerie|parkhaus|"
    r"tiefgarage|parken|getraenke|haus\b|betrieb|handel|druckerei|kanzlei|technik|elektro|station\b|center\b"
)
_SLOGAN = re.compile(r"[!?]|\bwir\b|\bsie\b|\bihr|\bimmer\b|\bes gibt\b", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]")


def vendor_of(rows: Sequence[Row]) -> Found[str] | None:
    """Choose the vendor's name among the texts at the top, or None where there is no likely one.

    Points are given for large type, for standing first or right above the street, for a legal form, for a
    word that names a trade, and for being printed again elsewhere (a sender's line, a footer, a web address);
    a slogan loses many. Addresses, headings, amounts and dates are out.
    """
    size = median_height(cell for row in rows for cell in row.cells)
    whole = "".join(fold_vendor(row.text) for row in rows)
    top = _top(rows)
    scored = [
        (_points(phrase, order=order, size=size, whole=whole) + _above_street(top, order), phrase)
        for order, row in enumerate(top)
        for phrase in row.phrases
        if _may_be_a_name(phrase.text)
    ]
    if not scored:
        return None
    points, phrase = max(scored, key=lambda entry: entry[0])
    reason = f"{points:.1f} points for size, place and words, {phrase.height / size:.1f} times the usual height"
    return Found(value=phrase.text.strip(" ,·*-"), reason=reason, score=phrase.score)


def _top(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows above the first amount, at least two and at most nine."""
    first_amount = next((i for i, row in enumerate(rows) if amounts_in(row.text)), len(rows))
    return rows[: max(2, min(_TOP_ROWS, first_amount))]


def _may_be_a_name(text: str) -> bool:
    folded = fold(text)
    letters = len(_LETTERS.findall(text))
    return (
        letters >= 3
        and letters >= 0.6 * len(text.replace(" ", ""))
        and not _ADDRESS.search(folded)
        and not _HEADING.search(folded)
        and not dates_in(text)
    )


def _points(phrase: TextLine, *, order: int, size: float, whole: str) -> float:
    folded, bare = fold(phrase.text), fold_vendor(phrase.text)
    points = 4.0 * (phrase.height / size - 1) - 0.35 * order
    points += 0.6 * has_legal_form(phrase.text) + 0.8 * bool(_TRADE.search(folded))
    points += 0.8 * (len(bare) > 3 and whole.count(bare) > 1)
    return points - 3.5 * bool(_SLOGAN.search(phrase.text))


def _above_street(top: Sequence[Row], order: int) -> float:
    return 0.5 * (order + 1 < len(top) and bool(_ADDRESS.search(fold(top[order + 1].text))))

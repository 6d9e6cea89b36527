"""Which date on a receipt is the day it was issued."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date

from nightshift.documents.folding import fold
from nightshift.documents.found import Found
from nightshift.documents.printed_numbers import dates_in, has_time
from nightshift.documents.text_lines import Row

_ISSUED = re.compile(r"rechnungsdatum|belegdatum|bezahlt|ausfahrt|rechnung\b.*\bvom\b")
_DATED = re.compile(r"datum")
_OTHER = re.compile(
    r"bestell|liefer|leistung|faellig|zahlbar|ueberweis|\bbis\b|\bab\b|einfahrt|einwurf|gueltig|geburt|angebot"
)


def date_of(rows: Sequence[Row]) -> Found[date] | None:
    """Choose the date of issue, or None where no date is printed.

    In order: what the row says (issued on; "Datum" or a time of day beside it, better both; nothing; last
    of all that it is a date of order, delivery, entry or payment); how often it is printed; the first.
    """
    found = [(day, row) for row in rows for day in dates_in(row.text)]
    if not found:
        return None
    counts = Counter(day for day, _ in found)
    day, row = max(found, key=lambda entry: (_rank(entry[1]), counts[entry[0]]))
    return Found(
        value=day,
        reason=f"in the row “{row.text}”, printed {counts[day]} times",
        score=min(cell.score for cell in row.cells),
    )


def _rank(row: Row) -> int:
    folded = fold(row.text)
    if _OTHER.search(folded):
        return 0
    if _ISSUED.search(folded):
        return 4
    return 1 + bool(_DATED.search(folded)) + has_time(row.text)

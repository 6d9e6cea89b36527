"""Drawn receipts with their truth, one reader for all tests, and lines laid out by hand."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from nightshift.documents.accuracy import Facts
from nightshift.documents.reading import ReceiptReader
from nightshift.documents.receipts import random_receipts, write_receipt
from nightshift.documents.text_lines import TextLine

TODAY = datetime(2026, 11, 30, 1, 30, tzinfo=ZoneInfo("Europe/Berlin"))


@pytest.fixture(scope="session")
def reader() -> ReceiptReader:
    return ReceiptReader()


@pytest.fixture(scope="session")
def drawn_receipts(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Facts]:
    """Twelve receipts: each layout in two conditions, each condition four times."""
    folder = tmp_path_factory.mktemp("receipts")
    facts = {}
    for number, receipt in enumerate(random_receipts(2027, 12, today=TODAY)):
        path = folder / f"{number:02}-{receipt.layout}-{receipt.condition}.jpg"
        write_receipt(receipt, path)
        facts[path] = Facts(vendor=receipt.vendor.name, date=receipt.paid_at.date(), total=receipt.total)
    return facts


@pytest.fixture
def paper() -> Callable[..., tuple[TextLine, ...]]:
    return _paper


def _paper(*rows: str, size: int = 20, large: tuple[int, ...] = ()) -> tuple[TextLine, ...]:
    """Lay rows out under each other; "|" parts a row's cells, each 300 pixels further right.

    Args:
        *rows: One text a row.
        size: Height of a line in pixels.
        large: Indices of rows in double size.
    """
    lines, y = [], 0.0
    for index, row in enumerate(rows):
        height = size * (2 if index in large else 1)
        for column, text in enumerate(row.split("|")):
            left, right = 300.0 * column, 300.0 * column + 0.5 * height * len(text.strip())
            box = ((left, y), (right, y), (right, y + height), (left, y + height))
            lines.append(TextLine(text=text.strip(), box=box, score=0.99))
        y += 1.5 * height
    return tuple(lines)

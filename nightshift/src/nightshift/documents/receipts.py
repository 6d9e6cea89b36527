"""Draws receipt images: six layouts in three conditions, the same pixels for the same seed."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from PIL import Image

from nightshift.documents.invoice_layouts import letter, shop
from nightshift.documents.receipt import Condition, Layout, Receipt
from nightshift.documents.receipt_content import random_receipt
from nightshift.documents.till_layouts import fuel, parking, restaurant, supermarket
from nightshift.documents.wear import worn

_DRAW = {
    Layout.SUPERMARKET: supermarket,
    Layout.RESTAURANT: restaurant,
    Layout.FUEL: fuel,
    Layout.LETTER: letter,
    Layout.SHOP: shop,
    Layout.PARKING: parking,
}
_JPEG_QUALITY = 88


def draw_receipt(receipt: Receipt) -> Image.Image:
    """Draw a receipt in its layout and condition; grey, 560 to about 1350 pixels wide."""
    return worn(_DRAW[receipt.layout](receipt), receipt.condition, seed=receipt.seed)


def random_receipts(seed: int, count: int, *, today: datetime) -> Iterator[Receipt]:
    """Make up `count` receipts; layouts and conditions take turns, so each pair comes every 18.

    Args:
        seed: Chance; the same seed gives the same receipts.
        count: How many.
        today: Any instant of the day (aware, in the zone of the tills); receipts are of the 90 days before.
    """
    layouts, conditions = tuple(Layout), tuple(Condition)
    for index in range(count):
        yield random_receipt(
            f"receipt:{seed}:{index}",
            layout=layouts[index % len(layouts)],
            condition=conditions[(index + index // len(layouts)) % len(conditions)],
            today=today,
        )


def write_receipt(receipt: Receipt, path: Path) -> None:
    """Draw a receipt into a JPEG file; the folder must exist."""
    draw_receipt(receipt).save(path, "JPEG", quality=_JPEG_QUALITY)

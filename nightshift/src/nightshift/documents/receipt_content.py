"""Makes up receipts: who sold what, when and for how much, from one seed."""

import random
from datetime import datetime, timedelta
from decimal import Decimal

from nightshift.documents.receipt import Condition, Item, Layout, Receipt, Vendor
from nightshift.documents.trades import TRADES, Trade

_SURNAMES = (
    "Müller", "Schröder", "Köhler", "Böhm", "Jäger", "Krüger", "Schäfer", "Löffler", "Weiß", "Groß",
    "Huber", "Kühn", "Strauß", "Förster", "Bergmann", "Lindner", "Hartmann", "Öztürk", "Nowak", "Petersen",
    "Vögele", "Brückner", "Günther", "Hübner", "Döring", "Friedrich",
)  # fmt: skip
_STREETS = (
    "Hauptstraße", "Lindenstraße", "Bahnhofstraße", "Am Mühlbach", "Königsallee", "Schloßplatz", "Marktplatz",
    "Goethestraße", "Römerweg", "Grüner Weg", "Südring", "An der Brücke",
)  # fmt: skip
_PLACES = (
    "50667 Köln", "80331 München", "40213 Düsseldorf", "90402 Nürnberg", "48143 Münster", "99084 Erfurt",
    "20095 Hamburg", "10117 Berlin", "72070 Tübingen", "97070 Würzburg", "23552 Lübeck", "04109 Leipzig",
)  # fmt: skip


def random_receipt(seed: str, *, layout: Layout, condition: Condition, today: datetime) -> Receipt:
    """Make up one receipt of the 90 days before `today`; the same arguments give the same receipt.

    Args:
        seed: Any text; each receipt of a set needs its own.
        layout: Which paper.
        condition: How it looks.
        today: Any instant of the day (aware, in the zone of the tills).
    """
    chance, trade = random.Random(seed), TRADES[layout]
    items = _items(chance, trade)
    total = sum((item.price for item in items), start=Decimal(0))
    return Receipt(
        layout=layout,
        condition=condition,
        vendor=_vendor(chance, chance.choice(trade.vendors)),
        paid_at=_opening_time(chance, today),
        date_style=chance.choice(trade.date_styles),
        items=items,
        given=_cash(chance, total) if chance.random() < trade.cash_ratio else None,
        number=chance.randint(1000, 99999),
        seed=chance.getrandbits(32),
    )


def _opening_time(chance: random.Random, today: datetime) -> datetime:
    """Pick a time between eight in the morning and ten in the evening, one to ninety days ago."""
    day = (today - timedelta(days=chance.randint(1, 90))).replace(hour=8, minute=0, second=0, microsecond=0)
    return day + timedelta(seconds=chance.randint(0, 14 * 3600))


def _vendor(chance: random.Random, pattern: str) -> Vendor:
    return Vendor(
        name=pattern.format(chance.choice(_SURNAMES)),
        street=f"{chance.choice(_STREETS)} {chance.randint(1, 180)}",
        place=chance.choice(_PLACES),
        phone=f"0{chance.randint(201, 999)} / {chance.randint(10000, 999999)}",
        tax_number=f"DE{chance.randint(100000000, 999999999)}",
    )


def _items(chance: random.Random, trade: Trade) -> tuple[Item, ...]:
    count = min(len(trade.goods), chance.randint(*trade.lines))
    return tuple(
        Item(
            label=label,
            quantity=chance.choice(trade.quantities),
            unit_price=Decimal(chance.randrange(lowest, highest + 1, trade.step)) / 100,
            vat_percent=vat,
        )
        for label, lowest, highest, vat in chance.sample(trade.goods, count)
    )


def _cash(chance: random.Random, total: Decimal) -> Decimal:
    """Round up to a five or ten euro step, as people hand notes over."""
    step = chance.choice((5, 10, 50))
    return Decimal((int(total) // step + 1) * step)

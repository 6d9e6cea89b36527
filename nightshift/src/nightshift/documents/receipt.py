"""A receipt as a value: what is printed on it, and the German ways to write numbers and dates."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

MONTHS = (
    "Januar",
    "Februar",
    "März",
    "April",
    "Mai",
    "Juni",
    "Juli",
    "August",
    "September",
    "Oktober",
    "November",
    "Dezember",
)  # fmt: skip
_CENT = Decimal("0.01")


class Layout(StrEnum):
    """The six kinds of paper that end up in a shoebox."""

    SUPERMARKET = "supermarket"
    RESTAURANT = "restaurant"
    FUEL = "fuel"
    LETTER = "letter"
    SHOP = "shop"
    PARKING = "parking"


class Condition(StrEnum):
    """How the paper looks by the time somebody scans it."""

    CLEAN = "clean"
    TILTED = "tilted"
    FADED = "faded"


class DateStyle(StrEnum):
    """How a date is written; the values are strftime patterns but for the long form."""

    FULL = "%d.%m.%Y"
    SHORT = "%d.%m.%y"
    ISO = "%Y-%m-%d"
    LONG = "long"


@dataclass(frozen=True, kw_only=True)
class Item:
    """One line that was bought. Prices are gross, in EUR; `vat_percent` is 7 or 19."""

    label: str
    quantity: int
    unit_price: Decimal
    vat_percent: int

    @property
    def price(self) -> Decimal:
        """Gross price of the line in EUR."""
        return self.quantity * self.unit_price


@dataclass(frozen=True, kw_only=True)
class Vendor:
    """Who sold it: a name as it is printed at the top, and an address."""

    name: str
    street: str
    place: str
    phone: str
    tax_number: str


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """All that a layout may print.

    Attributes:
        layout: Which of the six papers this is.
        condition: How it looks after a while.
        vendor: Who sold it.
        paid_at: When it was sold, in the till's zone (aware): its wall clock time is printed.
        date_style: How this vendor writes dates.
        items: What was bought, at least one.
        given: Cash handed over in EUR, at least the total; None when paid by card.
        number: Running number of the receipt.
        seed: Chance for noise, angle and paper; the same seed draws the same pixels.
    """

    layout: Layout
    condition: Condition
    vendor: Vendor
    paid_at: datetime
    date_style: DateStyle
    items: tuple[Item, ...]
    given: Decimal | None
    number: int
    seed: int

    @property
    def total(self) -> Decimal:
        """Sum to pay in EUR."""
        return sum((item.price for item in self.items), start=Decimal(0)).quantize(_CENT)

    @property
    def date_text(self) -> str:
        """The date of the sale as this vendor writes it."""
        return german_date(self.paid_at, self.date_style)

    def vat_lines(self) -> tuple[tuple[int, Decimal, Decimal], ...]:
        """Return (percent, net, VAT) for each rate that occurs, lowest first."""
        return tuple(
            (percent, *_net_and_vat(sum(i.price for i in self.items if i.vat_percent == percent), percent))
            for percent in sorted({item.vat_percent for item in self.items})
        )


def _net_and_vat(gross: Decimal | int, percent: int) -> tuple[Decimal, Decimal]:
    net = (gross / (1 + Decimal(percent) / 100)).quantize(_CENT)
    return net, (gross - net).quantize(_CENT)


def german_amount(amount: Decimal) -> str:
    """Write an amount as Germans do: 1.234,56."""
    return f"{amount:,.2f}".translate(str.maketrans(",.", ".,"))


def german_date(day: datetime, style: DateStyle) -> str:
    """Write a date in one of four styles: 03.11.2026, 03.11.26, 2026-11-03, 3. November 2026."""
    if style is DateStyle.LONG:
        return f"{day.day}. {MONTHS[day.month - 1]} {day.year}"
    return day.strftime(style.value)

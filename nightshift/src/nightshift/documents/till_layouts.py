"""Four papers that come out of a till: supermarket, restaurant, fuel station, car park."""

from datetime import timedelta
from decimal import Decimal

from nightshift.documents.lettering import FixedPitch, PlainAscii, Rubik, plain_ascii
from nightshift.documents.paper import Paper
from nightshift.documents.pixels import Pixels
from nightshift.documents.receipt import Receipt, german_amount, german_date

_REGULAR, _BOLD = Rubik(weight=400), Rubik(weight=700)
_ITALIC = Rubik(weight=700, italic=True)
_TILL, _TILL_BOLD = FixedPitch(face=_REGULAR), FixedPitch(face=_BOLD, pitch=0.74)


def supermarket(receipt: Receipt) -> Pixels:
    """A fixed pitch till receipt; traps: cash given, change, a table of net, VAT and gross."""
    paper = Paper(width=620, margin=34, face=_TILL, size=26)
    vendor = receipt.vendor
    paper.centre(vendor.name, size=38, face=_TILL_BOLD)
    for text in (vendor.street, vendor.place, f"Tel. {vendor.phone}", f"UID Nr. {vendor.tax_number}"):
        paper.centre(text)
    paper.skip(18)
    paper.line((-paper.right + 30, "EUR"))
    for item in receipt.items:
        _till_item(paper, item.label, item.quantity, item.unit_price, "A" if item.vat_percent == 7 else "B")
    paper.rule(dashed=True)
    paper.pair("SUMME", f"EUR {german_amount(receipt.total)}", size=34, face=_TILL_BOLD)
    paper.rule(dashed=True)
    _payment(paper, receipt, cash="Gegeben BAR", card="Kartenzahlung")
    paper.skip(14)
    paper.line((paper.margin, "MwSt"), (-290, "Netto"), (-430, "MwSt"), (-paper.right, "Brutto"))
    for letter, (percent, net, vat) in zip("AB", receipt.vat_lines(), strict=False):
        cells = ((-290, net), (-430, vat), (-paper.right, net + vat))
        paper.line((paper.margin, f"{letter} {percent},0%"), *((x, german_amount(value)) for x, value in cells))
    paper.skip(18)
    paper.pair(f"{receipt.date_text}  {receipt.paid_at:%H:%M}", f"Bon-Nr.{receipt.number}")
    paper.centre("Vielen Dank für Ihren Einkauf!")
    return paper.cut()


def _till_item(paper: Paper, label: str, quantity: int, unit_price: Decimal, letter: str) -> None:
    price = german_amount(quantity * unit_price)
    paper.line((paper.margin, label), (-paper.right + 30, price), (-paper.right, letter))
    if quantity > 1:
        paper.line((paper.margin + 40, f"{quantity} Stk x   {german_amount(unit_price)}"))


def restaurant(receipt: Receipt) -> Pixels:
    """A proportional bill with the date on top; traps: net, VAT, cash, change, an empty tip line."""
    paper = Paper(width=700, margin=48, face=_REGULAR, size=27)
    vendor = receipt.vendor
    paper.centre(vendor.name, size=46, face=_ITALIC)
    paper.centre(f"{vendor.street}, {vendor.place}", size=24)
    paper.centre(f"Telefon {vendor.phone}", size=24)
    paper.skip(16)
    paper.pair(f"Rechnung Nr. {receipt.number}", f"Tisch {receipt.number % 40 + 1}")
    paper.pair(f"Datum: {receipt.date_text}", f"{receipt.paid_at:%H:%M} Uhr")
    paper.rule()
    for item in receipt.items:
        paper.line(
            (paper.margin, f"{item.quantity} x"),
            (paper.margin + 70, item.label),
            (-paper.right + 120, german_amount(item.unit_price)),
            (-paper.right, german_amount(item.price)),
        )
    paper.rule()
    paper.pair("Gesamtbetrag", f"{german_amount(receipt.total)} €", size=36, face=_BOLD)
    paper.skip(10)
    for percent, net, vat in receipt.vat_lines():
        paper.pair(f"Netto {percent} %", f"{german_amount(net)} €", size=24)
        paper.pair(f"enthaltene MwSt {percent} %", f"{german_amount(vat)} €", size=24)
    _payment(paper, receipt, cash="Bar gegeben", card="EC-Karte")
    paper.left("Trinkgeld: ____________")
    paper.skip(12)
    paper.centre(f"Steuernummer {vendor.tax_number}", size=24)
    paper.centre("Es bediente Sie Frau Schöne. Auf Wiedersehen!", size=24)
    return paper.cut()


def fuel(receipt: Receipt) -> Pixels:
    """A till without umlauts; traps: litres and a unit price with three decimals, a card slip below."""
    paper = Paper(width=600, margin=40, face=PlainAscii(), size=28)
    vendor = receipt.vendor
    paper.left(plain_ascii(vendor.name).upper(), size=36)
    for text in (vendor.street, vendor.place, f"USt-IdNr. {vendor.tax_number}"):
        paper.left(text, size=25)
    paper.skip(14)
    paper.pair(f"Beleg-Nr. {receipt.number}", f"Kasse {receipt.number % 4 + 1}")
    paper.pair(receipt.date_text, f"{receipt.paid_at:%H:%M:%S}")
    paper.rule(dashed=True)
    for item in receipt.items:
        paper.pair(item.label, f"{german_amount(item.price)} EUR")
        if item.label in {"Super E10", "Diesel", "Super Plus"}:
            paper.left(_pump(receipt.number, item.price), size=24)
    paper.rule(dashed=True)
    paper.pair("Zu zahlen", f"{german_amount(receipt.total)} EUR", size=38)
    for percent, net, vat in receipt.vat_lines():
        paper.pair("Nettobetrag", german_amount(net), size=25)
        paper.pair(f"MwSt {percent},00%", german_amount(vat), size=25)
    paper.skip(12)
    _payment(paper, receipt, cash="Bar erhalten", card="girocard")
    paper.centre("Gute Fahrt!")
    return paper.cut()


def _pump(number: int, price: Decimal) -> str:
    """Write pump, litres and the price of a litre, which has three decimals."""
    by_litre = Decimal("1.649") + Decimal(number % 200) / 1000
    litres = german_amount(price / by_litre)
    return f"   Säule {number % 9 + 1}   {litres} l   {by_litre:.3f} EUR/l".replace(".", ",")


def parking(receipt: Receipt) -> Pixels:
    """A short ticket in large type; traps: the time of entry is another date, the duration."""
    paper = Paper(width=560, margin=44, face=_BOLD, size=30)
    vendor, entry = receipt.vendor, receipt.paid_at - timedelta(hours=9 + receipt.number % 30)
    paper.band(height=84, grey=30)
    paper.y += 16
    paper.centre(vendor.name, size=36, ink=255)
    paper.skip(38)
    paper.centre(f"{vendor.street}, {vendor.place}", size=24, face=_REGULAR)
    paper.centre("QUITTUNG", size=34)
    paper.rule()
    paper.pair("Einfahrt", f"{german_date(entry, receipt.date_style)}  {entry:%H:%M}", face=_REGULAR)
    paper.pair("Bezahlt am", f"{receipt.date_text}  {receipt.paid_at:%H:%M}", face=_REGULAR)
    hours, minutes = divmod(int((receipt.paid_at - entry).total_seconds()) // 60, 60)
    paper.pair("Parkdauer", f"{hours} Std {minutes:02} Min", face=_REGULAR)
    paper.rule()
    paper.pair("Betrag", f"{german_amount(receipt.total)} €", size=48)
    for percent, _, vat in receipt.vat_lines():
        paper.left(f"inkl. {percent} % MwSt {german_amount(vat)} €", size=24, face=_REGULAR)
    _payment(paper, receipt, cash="Einwurf", card="Kreditkarte")
    paper.centre(f"Ticket {receipt.number}", size=24, face=_REGULAR)
    return paper.cut()


def _payment(paper: Paper, receipt: Receipt, *, cash: str, card: str) -> None:
    if receipt.given is None:
        paper.pair(card, f"{german_amount(receipt.total)} EUR")
        return
    paper.pair(cash, german_amount(receipt.given))
    paper.pair("Rückgeld", german_amount(receipt.given - receipt.total))

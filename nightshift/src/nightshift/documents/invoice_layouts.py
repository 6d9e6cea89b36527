"""Two A4 papers, 150 dots an inch: a tradesman's letter and an online shop's invoice."""

from datetime import timedelta
from decimal import Decimal

from nightshift.documents.lettering import Rubik
from nightshift.documents.paper import Paper
from nightshift.documents.pixels import Pixels
from nightshift.documents.receipt import DateStyle, Receipt, german_amount, german_date

_WIDTH, _LENGTH = 1240, 1754
_LIGHT, _REGULAR, _BOLD = Rubik(weight=300), Rubik(weight=400), Rubik(weight=700)
_BUYER = ("Fröhlich & Partner GbR", "z. Hd. Frau Jürgens", "Sandstraße 14", "53111 Bonn")


def letter(receipt: Receipt) -> Pixels:
    """An invoice in letter form; traps: buyer, due date and month of work, net sum, VAT."""
    paper = Paper(width=_WIDTH, margin=120, face=_REGULAR, size=25, y=90)
    vendor = receipt.vendor
    paper.line((-paper.right, vendor.name), size=46, face=_BOLD)
    paper.line((-paper.right, f"{vendor.street} · {vendor.place}"), size=22, face=_LIGHT)
    paper.skip(70)
    for text in _BUYER:
        paper.left(text)
    paper.skip(30)
    paper.line((-paper.right, f"Rechnungsdatum: {receipt.date_text}"))
    paper.line((-paper.right, f"Kundennummer: {receipt.number % 900 + 100}"))
    paper.skip(20)
    paper.left(f"Rechnung Nr. {receipt.paid_at.year}-{receipt.number}", size=34, face=_BOLD)
    paper.skip(10)
    paper.left("Sehr geehrte Damen und Herren,")
    paper.left("für die ausgeführten Arbeiten berechnen wir Ihnen wie vereinbart:")
    paper.skip(20)
    _letter_table(paper, receipt)
    paper.skip(40)
    due = german_date(receipt.paid_at + timedelta(days=14), receipt.date_style)
    paper.left(f"Bitte überweisen Sie den Betrag bis zum {due} ohne Abzug.")
    paper.left("Mit freundlichen Grüßen")
    _letter_foot(paper, receipt)
    return paper.cut(length=_LENGTH)


def _letter_table(paper: Paper, receipt: Receipt) -> None:
    columns = (paper.margin, paper.margin + 70, -790, -960, -paper.right)
    heads = ("Pos.", "Bezeichnung", "Menge", "Einzelpreis", "Gesamt")
    paper.line(*zip(columns, heads, strict=True), face=_BOLD)
    paper.rule()
    net = sum((net for _, net, _ in receipt.vat_lines()), start=Decimal(0))
    for position, item in enumerate(receipt.items, start=1):
        amounts = (german_amount(item.unit_price), german_amount(item.price))
        paper.line(*zip(columns, (f"{position}", item.label, f"{item.quantity}", *amounts), strict=True))
    paper.rule()
    paper.line((-900, "Nettobetrag"), (-paper.right, f"{german_amount(net)} €"))
    for percent, _, vat in receipt.vat_lines():
        paper.line((-900, f"enthaltene {percent} % MwSt"), (-paper.right, f"{german_amount(vat)} €"))
    paper.line((-900, "Gesamtbetrag"), (-paper.right, f"{german_amount(receipt.total)} €"), size=30, face=_BOLD)


def _letter_foot(paper: Paper, receipt: Receipt) -> None:
    paper.y = _LENGTH - 130
    paper.rule()
    vendor = receipt.vendor
    paper.line((paper.margin, vendor.name), (640, f"Tel. {vendor.phone}"), size=20, face=_LIGHT)
    paper.line(
        (paper.margin, f"{vendor.street}, {vendor.place}"),
        (640, f"USt-IdNr. {vendor.tax_number}"),
        size=20,
        face=_LIGHT,
    )


def shop(receipt: Receipt) -> Pixels:
    """A shop's invoice with a ruled table; traps: date of the order, subtotal, parcel number."""
    paper = Paper(width=_WIDTH, margin=90, face=_REGULAR, size=25, y=0)
    vendor = receipt.vendor
    paper.band(height=130, grey=70)
    paper.y = 38
    paper.line((paper.margin, vendor.name), size=48, face=_BOLD, ink=255)
    paper.y = 160
    paper.left(f"{vendor.name} · {vendor.street} · {vendor.place}", size=21, face=_LIGHT)
    paper.skip(24)
    ordered = german_date(receipt.paid_at - timedelta(days=2), DateStyle.FULL)
    facts = (
        ("RECHNUNG", ""),
        ("Rechnungsnummer", f"R{receipt.number:06}"),
        ("Rechnungsdatum", receipt.date_text),
        ("Bestelldatum", ordered),
    )
    for address, (name, value) in zip(_BUYER, facts, strict=True):
        paper.line((paper.margin, address), (660, name), (-paper.right, value))
    paper.skip(50)
    _shop_table(paper, receipt)
    paper.skip(50)
    paper.left(f"Bezahlt mit PayPal. Sendungsnummer 0034{receipt.seed:010}.")
    paper.left("Rücksendungen bitte innerhalb von 14 Tagen. Vielen Dank für Ihre Bestellung!")
    paper.skip(30)
    paper.centre(f"{vendor.name} · Tel. {vendor.phone} · USt-IdNr. {vendor.tax_number}", size=20, face=_LIGHT)
    return paper.cut(length=max(paper.y + 60, 1300))


def _shop_table(paper: Paper, receipt: Receipt) -> None:
    top = paper.y + 6
    columns = (paper.margin + 14, -720, -930, -paper.right + 14)
    paper.rule()
    paper.line(*zip(columns, ("Artikel", "Menge", "Preis", "Summe"), strict=True), face=_BOLD)
    paper.rule()
    for item in receipt.items:
        cells = (item.label, f"{item.quantity}", german_amount(item.unit_price), german_amount(item.price))
        paper.line(*zip(columns, cells, strict=True))
        paper.rule()
    for x in (paper.margin, 600, 750, 950, paper.right):
        paper.column_rule(x, top=top)
    paper.skip(24)
    net = sum((net for _, net, _ in receipt.vat_lines()), start=Decimal(0))
    paper.line((-930, "Zwischensumme netto"), (-paper.right + 14, german_amount(net)))
    for percent, _, vat in receipt.vat_lines():
        paper.line((-930, f"MwSt {percent} %"), (-paper.right + 14, german_amount(vat)))
    paper.line((-930, "Gesamtsumme"), (-paper.right + 14, f"EUR {german_amount(receipt.total)}"), size=29, face=_BOLD)

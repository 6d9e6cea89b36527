"""What German bank statements say: families of SEPA entries, parties, and their Verwendungszweck."""

from __future__ import annotations

from dataclasses import dataclass

from nightshift.world.chance import LognormalRule


@dataclass(frozen=True, kw_only=True)
class Party:
    """The other side of an entry.

    Attributes:
        name: As printed on the statement.
        purpose: Template of the Verwendungszweck; `{nr}`, `{day}`, `{month}`, `{year}` are filled in.
        amount: Distribution of the amount, euros.
        merchant_code: ISO 18245 category of a card payment, or None.
    """

    name: str
    purpose: str
    amount: LognormalRule
    merchant_code: str | None


@dataclass(frozen=True, kw_only=True)
class Family:
    """A kind of entry.

    Attributes:
        label: Buchungstext, as German banks print it.
        code: ISO 20022 bank transaction family.
        sub_code: ISO 20022 sub-family.
        incoming: True for a credit.
        parties: Who may stand on the other side.
    """

    label: str
    code: str
    sub_code: str
    incoming: bool
    parties: tuple[Party, ...]


def _parties(table: str) -> tuple[Party, ...]:
    rows = (tuple(cell.strip() for cell in line.split("|")) for line in table.strip().splitlines())
    return tuple(_party(row) for row in rows)


def _party(row: tuple[str, ...]) -> Party:
    name, purpose, median, sigma, *merchant = row
    amount = LognormalRule(median=float(median), sigma=float(sigma))
    return Party(name=name, purpose=purpose, amount=amount, merchant_code=merchant[0] if merchant else None)


# The tables' columns: name | purpose | median in euros | sigma | merchant code (cards only).
DIRECT_DEBIT = Family(
    label="LASTSCHRIFT",
    code="RDDT",
    sub_code="ESDD",
    incoming=False,
    parties=_parties("""
        Stadtwerke Mühlbach GmbH | Abschlag Strom {month}/{year} Vertragskonto {nr} | 184 | 0.3
        Fernwärme Südheide AG | Fernwärme Abschlag {month}/{year} KdNr {nr} | 240 | 0.4
        Nordfunk Mobil GmbH | Mobilfunk Rechnung {nr} vom {day}.{month}.{year} | 59 | 0.4
        Glasfaser Küste eG | Internet und Telefon {month}/{year} KdNr {nr} | 49.95 | 0
        Wolkenspeicher Europa SE | Cloud-Dienste Rechnung {nr} | 88 | 0.8
        Allgemeine Gewerbeversicherung a.G. | Beitrag Betriebshaftpflicht Police {nr} | 312 | 0.3
        Berufsverband Holz & Bau | Mitgliedsbeitrag {year} Mitgl.-Nr. {nr} | 420 | 0.5
        Krankenkasse Weserland | SV-Beiträge {month}/{year} Betr.-Nr. {nr} | 1850 | 0.6
        Leasing Flussufer GmbH & Co. KG | Leasingrate Fahrzeug Vertrag {nr} | 389 | 0.2
    """),
)
CREDIT = Family(
    label="GUTSCHRIFT",
    code="RCDT",
    sub_code="ESCT",
    incoming=True,
    parties=_parties("""
        Bäckerei Höfler OHG | Rechnung RE-{year}-{nr} | 640 | 0.8
        Müller & Söhne Bauunternehmung GmbH | RE-{year}-{nr} abzgl. 2% Skonto | 3400 | 0.9
        Praxis Dr. Köhler | Rechnungsnr. {nr} vom {day}.{month}. | 890 | 0.7
        Gemeinde Oberammerfeld | Kassenzeichen {nr} Ihre Rechnung | 2100 | 0.9
        Jürgen Weiß | Danke für die schnelle Arbeit, Rg {nr} | 210 | 0.7
        Kartenabrechnung Süd GmbH | Kartenumsätze {day}.{month}.{year} Terminal {nr} | 760 | 0.6
        Öztürk Gastronomie e.K. | Anzahlung Auftrag {nr} | 1500 | 0.6
    """),
)
TRANSFER = Family(
    label="SEPA-ÜBERWEISUNG",
    code="ICDT",
    sub_code="ESCT",
    incoming=False,
    parties=_parties("""
        Großhandel Schäfer KG | Rechnung {nr} KdNr 20417 | 1260 | 0.9
        Holzwerk Fürst GmbH | RG {nr} Lieferung vom {day}.{month}. | 980 | 0.9
        Druckerei Grün & Partner | Rechnung {nr} Geschäftspapiere | 265 | 0.6
        Steuerkanzlei Brückner PartG mbB | Honorar Finanzbuchführung {month}/{year} RG {nr} | 345 | 0.3
        Gebäudereinigung Möller | Unterhaltsreinigung {month}/{year} Rg.-Nr. {nr} | 290 | 0.3
    """),
)
CARD = Family(
    label="KARTENZAHLUNG",
    code="CCRD",
    sub_code="POSD",
    incoming=False,
    parties=_parties("""
        TANKHOF NORD LÜNEBURG | Kartenzahlung {day}.{month}. Terminal {nr} | 74 | 0.3 | 5541
        BAUMARKT KÖRNER 118 | Kartenzahlung {day}.{month}. Beleg {nr} | 58 | 0.9 | 5200
        BUEROBEDARF WEIDENFELD | Kartenzahlung {day}.{month}. Beleg {nr} | 39 | 0.7 | 5943
        GASTHAUS ZUM LÖWEN | Bewirtung {day}.{month}. Beleg {nr} | 86 | 0.5 | 5812
        FERNBAHN TICKET ONLINE | Fahrkarte Auftrag {nr} | 67 | 0.6 | 4112
        PARKHAUS AM DOM | Parkentgelt {day}.{month}. | 11 | 0.5 | 7523
    """),
)
STANDING_ORDER = Family(
    label="DAUERAUFTRAG",
    code="ICDT",
    sub_code="STDO",
    incoming=False,
    parties=_parties("""
        Hausverwaltung Kräher | Miete Gewerberäume {month}/{year} | 1450 | 0
        Immobilien Grüner Hof GbR | Pacht Werkstatt {month}/{year} | 980 | 0
    """),
)
SALARY = Family(
    label="LOHN/GEHALT",
    code="ICDT",
    sub_code="SALA",
    incoming=False,
    parties=_parties("""
        Sören Jäger | Gehalt {month}/{year} Personalnr. {nr} | 2380 | 0.1
        Anna-Lena Größler | Lohn {month}/{year} Personalnr. {nr} | 2140 | 0.1
    """),
)
TAX = Family(
    label="LASTSCHRIFT",
    code="RDDT",
    sub_code="BBDD",
    incoming=False,
    parties=_parties("Finanzamt Nordstadt | USt-Vorauszahlung {month}/{year} StNr {nr} | 1720 | 0.5"),
)

EVERYDAY = ((DIRECT_DEBIT, 0.26), (CREDIT, 0.32), (TRANSFER, 0.18), (CARD, 0.24))
"""Families of unscheduled entries, each with its share."""

MONTHLY = ((1, STANDING_ORDER), (10, TAX), (27, SALARY))
"""Day of the month (a weekend moves it to Monday), and what is booked then."""

HOLDERS = (
    "Tischlerei Brandstätter GmbH",
    "Malerbetrieb Krüger",
    "Gärtnerei Blühwerk GbR",
    "Elektro Schönfeld e.K.",
    "Fahrradladen Kettenöl UG",
    "Café Süßholz",
    "Physiotherapie Böttcher",
    "Dachdeckerei Hölzl & Sohn",
    "Agentur Fünfzehn GmbH",
    "Weinhandel Traubenglück",
    "Schlosserei Jänsch",
    "Übersetzungsbüro Noël",
)

BANKS = (
    ("Hansebank Lübeck", "HALBDE21XXX", "23051030"),
    ("Genossenschaftsbank Mühltal eG", "GEMTDE51XXX", "50863513"),
    ("Stadtsparkasse Königsau", "SSKGDEM1XXX", "70352040"),
    ("Kontor Direktbank AG", "KODBDEFFXXX", "50031900"),
)
"""Name, BIC and Bankleitzahl of invented banks."""

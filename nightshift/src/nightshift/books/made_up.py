"""Makes up the customers of the books from one seed: companies, accounts, entries, agent runs."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from nightshift.books.models import RunKind, RunState

_TRADES = (
    "Zimmerei", "Bäckerei", "Malerbetrieb", "Elektrotechnik", "Schlosserei", "Gärtnerei", "Fahrschule",
    "Tischlerei", "Physiotherapie", "Dachdeckerei", "Werbeagentur", "Küchenstudio", "Fotostudio",
    "Spedition", "Buchhandlung", "Weinhandel", "Änderungsschneiderei", "Hörgeräte", "Ingenieurbüro",
    "Gebäudereinigung",
)  # fmt: skip
_NAMES = (
    "Köhler", "Müller", "Schröder", "Böttcher", "Jäger", "Weiß", "Grünwald", "Süß", "Lüders", "Hänsel",
    "Öztürk", "Brückner", "Großmann", "Vögele", "Kühne", "Strauß", "Petersen", "Nowak", "Lorenz",
    "Förster",
)  # fmt: skip
_FORMS = ("GmbH", "GmbH & Co. KG", "e.K.", "UG (haftungsbeschränkt)", "GbR", "KG", "OHG")
_BANKS = (
    ("Sparkasse Mühlental", "37050199"),
    ("Volksbank Südheide", "25190001"),
    ("Rheinische Kreditbank", "30070010"),
    ("Bürgerbank Köln", "37160087"),
    ("Genossenschaftsbank Lübeck", "23092620"),
    ("Direktbank Frankfurt", "50010517"),
)
_OUTGOING = (
    ("Stadtwerke Köln", "Abschlag Strom und Wärme {month} Vertrag {number}"),
    ("Hausverwaltung Brüggemann", "Miete Geschäftsräume {month}"),
    ("Finanzamt Köln-Süd", "Umsatzsteuer-Vorauszahlung {month} StNr {number}"),
    ("Bürobedarf Löffler GmbH", "Rechnung RE-{number} Büromaterial, danke für Ihren Auftrag"),
    ("Großhandel Schäfer KG", "Re. {number} abzgl. 2 % Skonto"),
    ("Versicherungsgruppe Nürnberger Land", "Beitrag Betriebshaftpflicht {number}"),
    ("Krankenkasse Nordlicht", "Sozialversicherungsbeiträge {month}"),
    ("Tankstelle Jäger", "Kartenzahlung girocard Beleg {number}"),
    ("Telefon und Netz AG", "Mobilfunk Rechnung {number} {month}"),
    ("Lohn und Gehalt", "Gehalt {month} Personalnr. {number}"),
)
_INCOMING = (
    ("Fröhlich & Partner GbR", "Rechnung {number} vielen Dank"),
    ("Gemeinde Grünau", "Ihre Rechnung {number}, Straßenbau Abschnitt Süd"),
    ("Familie Hübner", "Anzahlung Küche Auftrag {number}"),
    ("Möbelhaus Süd GmbH", "Gutschrift {number} Rücksendung"),
    ("Kartenumsätze Terminal", "Summe Kartenzahlungen {month} Terminal {number}"),
)
_MONTHS = ("Jan.", "Feb.", "März", "April", "Mai", "Juni", "Juli", "Aug.", "Sept.", "Okt.", "Nov.", "Dez.")
_HISTORY_DAYS = 30

NEW_ACCOUNT_EVERY = 20

Row = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class Chance:
    """Named, independent streams of chance out of one seed, so that more of one thing changes no other."""

    seed: int

    def of(self, name: str) -> random.Random:
        """Return the stream of this name, from its start."""
        return random.Random(f"books:{self.seed}:{name}")


def company_names(chance: Chance, count: int) -> list[str]:
    """Make up `count` different company names."""
    draw = chance.of("companies")
    pairs = [f"{trade} {name}" for trade in _TRADES for name in _NAMES]
    chosen = [pairs[index % len(pairs)] for index in draw.sample(range(max(count, len(pairs))), count)]
    numbered = [name if chosen.index(name) == index else f"{name} {index + 1}" for index, name in enumerate(chosen)]
    return [f"{name} {draw.choice(_FORMS)}" for name in numbered]


def account_row(chance: Chance, account_id: int, *, tenant_id: int, now: datetime) -> Row:
    """Make up an account that was last synced about a day ago, with a consent for weeks to come.

    One in `NEW_ACCOUNT_EVERY` was connected yesterday and never synced: its first sync brings months, page by page.
    """
    draw = chance.of(f"account:{account_id}")
    bank, code = draw.choice(_BANKS)
    row: Row = {
        "id": account_id,
        "tenant_id": tenant_id,
        "aggregator_uid": UUID(int=draw.getrandbits(128), version=4),
        "iban": german_iban(code, account_id * 10_000 + draw.randrange(10_000)),
        "bank_name": bank,
        "currency": "EUR",
        "consent_valid_until": now + timedelta(days=draw.randint(20, 170)),
        "balance": Decimal(draw.randint(-500_000, 9_000_000)) / 100,
        "last_synced_at": now - timedelta(hours=20, minutes=draw.randint(0, 240)),
        "last_synced_by": None,
    }
    return {**row, "balance": None, "last_synced_at": None} if is_new_account(account_id) else row


def is_new_account(account_id: int) -> bool:
    """Tell whether an account has never been synced before the night."""
    return account_id % NEW_ACCOUNT_EVERY == 0


def german_iban(bank_code: str, number: int) -> str:
    """Build a German IBAN with right check digits from a bank code and an account number of ten digits."""
    account = f"{bank_code}{number:010}"
    return f"DE{98 - int(account + '131400') % 97:02}{account}"


def entry_rows(chance: Chance, account_id: int, *, count: int, now: datetime) -> Iterator[Row]:
    """Make up `count` entries of the last 30 days, as earlier syncs brought them."""
    draw = chance.of(f"entries:{account_id}")
    for number in range(count):
        booked_on = now.date() - timedelta(days=draw.randint(1, _HISTORY_DAYS))
        amount, counterparty, remittance = _entry(draw, booked_on)
        yield {
            "account_id": account_id,
            "entry_reference": f"H{account_id:05}-{number:04}-{draw.getrandbits(32):08x}",
            "booked_on": booked_on,
            "value_on": booked_on,
            "amount": amount,
            "currency": "EUR",
            "counterparty": counterparty,
            "remittance": remittance,
            "created_at": now - timedelta(hours=24),
            "synced_by": None,
        }


def _entry(draw: random.Random, day: date) -> tuple[Decimal, str, str]:
    incoming = draw.random() < 0.3
    counterparty, text = draw.choice(_INCOMING if incoming else _OUTGOING)
    cents = draw.randint(1_000, 900_000) if incoming else -draw.randint(500, 250_000)
    month = f"{_MONTHS[day.month - 1]} {day.year}"
    return Decimal(cents) / 100, counterparty, text.format(month=month, number=draw.randint(10_000, 999_999))


def run_row(chance: Chance, run_id: int, *, tenant_id: int, now: datetime) -> Row:
    """Make up an agent run that a person approved in the last three days and nobody has submitted."""
    draw = chance.of(f"run:{run_id}")
    last_month = now.replace(day=1) - timedelta(days=1)
    return {
        "id": run_id,
        "tenant_id": tenant_id,
        "kind": draw.choice(tuple(RunKind)).value,
        "period": f"{last_month:%Y-%m}",
        "approved_at": now - timedelta(minutes=draw.randint(60, 3 * 24 * 60)),
        "state": RunState.APPROVED.value,
    }

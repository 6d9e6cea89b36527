"""Fills empty books with a night's customers, accounts, history, receipts and runs, from one seed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, Engine, exists, func, insert, select, text

from nightshift.books.errors import BooksNotEmpty
from nightshift.books.made_up import Chance, Row, account_row, company_names, entry_rows, is_new_account, run_row
from nightshift.books.models import (
    SCHEMA,
    Account,
    AgentRun,
    Attachment,
    AttachmentTruth,
    Base,
    Tenant,
    Transaction,
)
from nightshift.books.shares import zipf_shares
from nightshift.documents.receipt import Receipt
from nightshift.documents.receipts import random_receipts, write_receipt

RECEIPT_FOLDER = "receipts"
_ENTRIES_PER_ACCOUNT = 10

Progress = Callable[[str, int, int], None]
"""Called with what is made ("receipts"), how many are done, and how many there will be."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much to generate; sizes of tenants follow Zipf's law.

    Attributes:
        tenants: Customers; each has one account at least.
        accounts: Bank accounts of all of them.
        receipts: Receipt images.
        runs: Approved agent runs.
    """

    tenants: int = 40
    accounts: int = 400
    receipts: int = 60
    runs: int = 240

    def __post_init__(self) -> None:
        if self.tenants < 1 or self.accounts < self.tenants or self.receipts < 0 or self.runs < 0:
            raise ValueError(
                f"{self} cannot be generated; ask for a tenant or more, an account or more for each, "
                "and no negative number of receipts or runs"
            )


def generate(
    engine: Engine,
    scale: Scale,
    *,
    seed: int,
    now: datetime,
    folder: Path,
    progress: Progress = lambda _what, _done, _total: None,
) -> None:
    """Write a night's books into an empty, migrated database, and its receipt images into a folder.

    The same seed, scale and `now` give the same rows with the same ids, and the same images. All rows are
    written in one transaction, after the images. About five seconds at the default scale.

    Args:
        engine: Where the books are; call `migrate` first.
        scale: How much of everything.
        seed: Chance.
        now: The instant the night begins (aware); history, approvals and receipts lie before it.
        folder: The night's folder; images go into its folder `receipts`, which is made.
        progress: Told after each step and each image.

    Raises:
        BooksNotEmpty: there are tenants already; nothing is changed.
    """
    with engine.begin() as connection:
        _must_be_empty(connection)
        receipts = tuple(random_receipts(seed, scale.receipts, today=now))
        _draw(receipts, folder=folder, progress=progress)
        for model, rows in _all_rows(scale, Chance(seed=seed), receipts=receipts, now=now):
            _insert(connection, model, list(rows))
            progress(model.__tablename__, 1, 1)
        _continue_ids(connection)


def empty_books(engine: Engine) -> None:
    """Delete all rows of the books, for a new night on the same database; the tables stay."""
    tables = ", ".join(f"{SCHEMA}.{table.name}" for table in Base.metadata.sorted_tables)
    with engine.begin() as connection:
        connection.execute(text(f"TRUNCATE {tables} RESTART IDENTITY"))


def receipt_path(number: int) -> str:
    """Name the image of the attachment with this id, relative to the night's folder."""
    return f"{RECEIPT_FOLDER}/receipt-{number:04}.jpg"


def _must_be_empty(connection: Connection) -> None:
    connection.execute(text(f"LOCK TABLE {SCHEMA}.tenants IN SHARE ROW EXCLUSIVE MODE"))
    if connection.scalar(select(exists(select(Tenant.id)))):
        raise BooksNotEmpty("the books hold tenants already; empty them first, or use another database")


def _draw(receipts: Sequence[Receipt], *, folder: Path, progress: Progress) -> None:
    (folder / RECEIPT_FOLDER).mkdir(parents=True, exist_ok=True)
    for number, receipt in enumerate(receipts, start=1):
        write_receipt(receipt, folder / receipt_path(number))
        progress("receipts", number, len(receipts))


def _all_rows(
    scale: Scale, chance: Chance, *, receipts: Sequence[Receipt], now: datetime
) -> Iterator[tuple[type[Base], Iterable[Row]]]:
    """Yield each table's rows, those first that others refer to."""
    names = company_names(chance, scale.tenants)
    yield Tenant, ({"id": number, "name": name} for number, name in enumerate(names, start=1))
    owners = _owners(scale.accounts, scale.tenants, at_least=1)
    yield Account, (account_row(chance, i, tenant_id=t, now=now) for i, t in enumerate(owners, start=1))
    counts = zipf_shares(scale.accounts * _ENTRIES_PER_ACCOUNT, scale.accounts, at_least=1)
    yield (
        Transaction,
        (
            row
            for i, n in enumerate(counts, start=1)
            if not is_new_account(i)
            for row in entry_rows(chance, i, count=n, now=now)
        ),
    )
    uploaders = _shuffled(chance, "receipts", scale.receipts, scale.tenants)
    yield (
        Attachment,
        (_attachment_row(i, tenant_id=t, now=now, receipt=receipts[i - 1]) for i, t in uploaders),
    )
    yield AttachmentTruth, (_truth_row(i, receipt) for i, receipt in enumerate(receipts, start=1))
    submitters = _shuffled(chance, "runs", scale.runs, scale.tenants)
    yield AgentRun, (run_row(chance, i, tenant_id=t, now=now) for i, t in submitters)


def _owners(total: int, tenants: int, *, at_least: int = 0) -> list[int]:
    shares = zipf_shares(total, tenants, at_least=at_least)
    return [tenant for tenant, share in enumerate(shares, start=1) for _ in range(share)]


def _shuffled(chance: Chance, name: str, total: int, tenants: int) -> Iterator[tuple[int, int]]:
    """Pair ids with owners in an order of chance, so that neighbours in time are of different tenants."""
    owners = _owners(total, tenants)
    chance.of(f"owners:{name}").shuffle(owners)
    return enumerate(owners, start=1)


def _attachment_row(number: int, *, tenant_id: int, now: datetime, receipt: Receipt) -> Row:
    return {
        "id": number,
        "tenant_id": tenant_id,
        "path": receipt_path(number),
        "layout": receipt.layout.value,
        "uploaded_at": now,
    }


def _truth_row(number: int, receipt: Receipt) -> Row:
    return {
        "attachment_id": number,
        "vendor": receipt.vendor.name,
        "issued_on": receipt.paid_at.date(),
        "total": receipt.total,
    }


def _insert(connection: Connection, model: type[Base], rows: Sequence[Row]) -> None:
    if rows:
        connection.execute(insert(model), rows)


def _continue_ids(connection: Connection) -> None:
    """Let the tables go on counting after the ids that were given."""
    for model in (Tenant, Account, Attachment, AgentRun):
        sequence = func.pg_get_serial_sequence(f"{SCHEMA}.{model.__tablename__}", "id")
        following = select(func.coalesce(func.max(model.id), 0) + 1).scalar_subquery()
        connection.execute(select(func.setval(sequence, following, False)))

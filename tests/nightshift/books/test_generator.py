import hashlib
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from nightshift.books.errors import BooksNotEmpty
from nightshift.books.generator import Scale, empty_books, generate
from nightshift.books.made_up import NEW_ACCOUNT_EVERY, german_iban
from nightshift.books.models import (
    Account,
    AgentRun,
    Attachment,
    AttachmentTruth,
    Base,
    Tenant,
    Transaction,
)
from nightshift.books.runs import runs_to_submit
from nightshift.books.sync_ledger import accounts_to_sync

SMALL = Scale(tenants=4, accounts=12, receipts=6, runs=8)


def all_rows(engine: Engine) -> dict[str, list[tuple[object, ...]]]:
    with engine.connect() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(select(table).order_by(table.c[0]))]
            for table in Base.metadata.sorted_tables
        }


def images(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*.jpg"))}


def test_the_same_seed_writes_the_same_rows_and_images(engine: Engine, tmp_path: Path, now: datetime) -> None:
    generate(engine, SMALL, seed=7, now=now, folder=tmp_path / "one")
    first = all_rows(engine)
    empty_books(engine)
    generate(engine, SMALL, seed=7, now=now, folder=tmp_path / "two")
    assert all_rows(engine) == first
    assert images(tmp_path / "one") == images(tmp_path / "two")
    empty_books(engine)
    generate(engine, SMALL, seed=8, now=now, folder=tmp_path / "three")
    assert all_rows(engine)["accounts"] != first["accounts"]
    assert images(tmp_path / "three") != images(tmp_path / "one")


def test_a_whole_night_has_the_sizes_that_were_asked_for(engine: Engine, tmp_path: Path, now: datetime) -> None:
    generate(engine, Scale(receipts=12), seed=1, now=now, folder=tmp_path)
    with Session(engine) as session:
        sizes = [session.scalar(select(func.count()).select_from(m)) for m in (Tenant, Account, Attachment, AgentRun)]
        assert sizes == [40, 400, 12, 240]
        by_tenant = session.scalars(select(func.count()).select_from(Account).group_by(Account.tenant_id)).all()
        assert len(by_tenant) == 40
        assert max(by_tenant) > 10 * min(by_tenant)
        assert len(accounts_to_sync(session, now)) == 400
        assert len(runs_to_submit(session)) == 240
        umlauts = select(func.count(Transaction.id)).where(Transaction.remittance.regexp_match("[äöüß]"))
        assert (session.scalar(umlauts) or 0) > 100


def test_one_account_in_twenty_has_never_been_synced_and_has_no_entries(
    engine: Engine, tmp_path: Path, now: datetime
) -> None:
    generate(engine, Scale(receipts=1), seed=1, now=now, folder=tmp_path)
    with Session(engine) as session:
        new = set(session.scalars(select(Account.id).where(Account.last_synced_at.is_(None))))
        assert new == set(range(NEW_ACCOUNT_EVERY, 401, NEW_ACCOUNT_EVERY))
        with_entries = set(session.scalars(select(Transaction.account_id).distinct()))
        assert with_entries == set(range(1, 401)) - new


def test_every_image_is_there_and_its_truth_is_kept_apart(engine: Engine, tmp_path: Path, now: datetime) -> None:
    generate(engine, SMALL, seed=7, now=now, folder=tmp_path)
    with Session(engine) as session:
        attachments = session.scalars(select(Attachment)).all()
        assert {one.layout for one in attachments} == {
            "supermarket", "restaurant", "fuel", "letter", "shop", "parking"
        }  # fmt: skip
        assert all((tmp_path / one.path).stat().st_size > 10_000 for one in attachments)
        assert set(session.scalars(select(AttachmentTruth.attachment_id))) == {one.id for one in attachments}


def test_progress_is_told_image_by_image_and_table_by_table(engine: Engine, tmp_path: Path, now: datetime) -> None:
    told: list[tuple[str, int, int]] = []
    generate(engine, SMALL, seed=7, now=now, folder=tmp_path, progress=lambda *step: told.append(step))
    assert told[:6] == [("receipts", number, 6) for number in range(1, 7)]
    assert [what for what, _, _ in told[6:]] == [
        "tenants", "accounts", "transactions", "attachments", "attachment_truth", "agent_runs"
    ]  # fmt: skip


def test_books_that_hold_tenants_are_left_alone(engine: Engine, tmp_path: Path, now: datetime) -> None:
    generate(engine, SMALL, seed=7, now=now, folder=tmp_path)
    before = all_rows(engine)
    with pytest.raises(BooksNotEmpty, match="empty them first"):
        generate(engine, SMALL, seed=8, now=now, folder=tmp_path / "other")
    assert all_rows(engine) == before
    assert not (tmp_path / "other").exists()


def test_ids_go_on_after_the_generated_ones(engine: Engine, tmp_path: Path, now: datetime) -> None:
    generate(engine, SMALL, seed=7, now=now, folder=tmp_path)
    with Session(engine) as session, session.begin():
        session.add(newcomer := Tenant(name="Neukunde"))
        session.flush()
        assert newcomer.id == 5


def test_emptied_books_have_no_row_in_any_table(engine: Engine, tmp_path: Path, now: datetime) -> None:
    generate(engine, SMALL, seed=7, now=now, folder=tmp_path)
    empty_books(engine)
    assert all_rows(engine) == {table.name: [] for table in Base.metadata.sorted_tables}


@pytest.mark.parametrize("scale", [{"tenants": 0}, {"tenants": 5, "accounts": 4}, {"receipts": -1}])
def test_an_impossible_scale_is_refused(scale: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="cannot be generated"):
        Scale(**scale)


def test_a_generated_iban_has_right_check_digits() -> None:
    iban = german_iban("37040044", 532013000)
    assert iban == "DE89370400440532013000"  # the registry's own example

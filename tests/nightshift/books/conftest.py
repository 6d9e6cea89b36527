"""Books in a fresh database of a real PostgreSQL."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.orm import Session

from nightshift.books.generator import empty_books
from nightshift.books.migrate import migrate
from nightshift.books.models import Account, AgentRun, Attachment, AttachmentTruth, Tenant

NOW = datetime(2026, 11, 30, 1, 30, tzinfo=ZoneInfo("Europe/Berlin"))


@contextmanager
def fresh_database() -> Iterator[str]:
    """Create a database of its own on the test server, and drop it at the end."""
    server = os.environ.get("SLACKWATER_TEST_POSTGRES", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres")
    name = f"nightshift_test_{uuid4().hex[:12]}"
    admin = create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    try:
        yield make_url(server).set(database=name).render_as_string(hide_password=False)
    finally:
        with admin.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        admin.dispose()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A fresh, empty database for the whole session."""
    with fresh_database() as url:
        yield url


@pytest.fixture
def unmigrated() -> Iterator[Engine]:
    with fresh_database() as url:
        engine = create_engine(url)
        yield engine
        engine.dispose()


@pytest.fixture(scope="session")
def migrated(postgres_url: str) -> Iterator[Engine]:
    engine = create_engine(postgres_url)
    migrate(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def engine(migrated: Engine) -> Engine:
    """Migrated books without a row."""
    empty_books(migrated)
    return migrated


@pytest.fixture
def session(engine: Engine) -> Iterator[Session]:
    """A session on small books: two tenants, accounts 1 to 3, attachments 1 and 2, runs 1 and 2."""
    with Session(engine) as session:
        session.add_all([Tenant(id=1, name="Bäckerei Müller"), Tenant(id=2, name="Spedition Groß")])
        session.flush()
        session.add_all(account(number, tenant_id=1 + number % 2) for number in (1, 2, 3))
        session.add_all(attachment(number) for number in (1, 2))
        session.add_all(run(number) for number in (1, 2))
        session.flush()
        session.add(AttachmentTruth(attachment_id=1, vendor="Café Süß", issued_on=NOW.date(), total=Decimal("9.50")))
        session.commit()
        yield session


@pytest.fixture
def now() -> datetime:
    return NOW


def account(number: int, *, tenant_id: int) -> Account:
    return Account(
        id=number,
        tenant_id=tenant_id,
        aggregator_uid=UUID(int=number),
        iban=f"DE{number:020}",
        bank_name="Bürgerbank",
        currency="EUR",
        consent_valid_until=NOW + timedelta(days=number - 1),
    )


def attachment(number: int) -> Attachment:
    return Attachment(id=number, tenant_id=number, path=f"receipts/{number}.jpg", layout="fuel", uploaded_at=NOW)


def run(number: int) -> AgentRun:
    return AgentRun(
        id=number,
        tenant_id=number,
        kind="vat_return",
        period="2026-10",
        approved_at=NOW - timedelta(hours=number),
        state="approved",
    )

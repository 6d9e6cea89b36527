"""The tables of the books (SQLAlchemy ORM), in the schema `nightshift`.

What must hold is a constraint of the database here, so that no code path and no hand can break it.
"""

from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, ClassVar
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    MetaData,
    Numeric,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from nightshift.documents.receipt import Layout

SCHEMA = "nightshift"


class RunState(StrEnum):
    """Where an agent run stands on its way to the filing gateway."""

    APPROVED = "approved"
    SUBMITTING = "submitting"
    SUBMITTED = "submitted"
    FAILED = "failed"


class RunKind(StrEnum):
    """What an agent prepared and a person approved."""

    VAT_RETURN = "vat_return"
    EC_SALES_LIST = "ec_sales_list"
    WAGE_TAX_RETURN = "wage_tax_return"
    INTRASTAT_REPORT = "intrastat_report"


def _one_of(column: str, values: type[StrEnum]) -> str:
    return f"{column} IN ({', '.join(repr(str(value)) for value in values)})"


class Base(DeclarativeBase):
    """Root of the models: instants are aware, money has two decimals, text has no length to guess."""

    metadata = MetaData(
        schema=SCHEMA,
        naming_convention={
            "pk": "pk_%(table_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
        },
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: DateTime(timezone=True),
        Decimal: Numeric(14, 2),
        str: Text(),
    }


class Tenant(Base):
    """A customer of the accounting product."""

    __tablename__ = "tenants"
    __table_args__ = (CheckConstraint("name <> ''", name="named"),)

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)


class Account(Base):
    """A bank account that a tenant connected through the aggregator, and reads under a session of it.

    `syncing_...` says which job is at its sync, and since when; empty while none is.
    """

    __tablename__ = "accounts"
    __table_args__ = (
        CheckConstraint("iban ~ '^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$'", name="iban_form"),
        CheckConstraint("currency ~ '^[A-Z]{3}$'", name="currency_form"),
        CheckConstraint("last_synced_at IS NULL OR balance IS NOT NULL", name="synced_with_balance"),
        CheckConstraint("(needs_consent_since IS NULL) = (consent_refusal IS NULL)", name="refused_with_a_word"),
        CheckConstraint("(refreshed_at IS NULL) = (refreshed_by IS NULL)", name="refreshed_by_a_job"),
        CheckConstraint("(syncing_since IS NULL) = (syncing_by IS NULL)", name="syncing_by_a_job"),
    )

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    tenant_id: Mapped[int] = mapped_column(ForeignKey("tenants.id"), index=True)
    aggregator_uid: Mapped[UUID] = mapped_column(unique=True)
    iban: Mapped[str] = mapped_column(unique=True)
    bank_name: Mapped[str]
    currency: Mapped[str]
    consent_valid_until: Mapped[datetime]
    balance: Mapped[Decimal | None]
    last_synced_at: Mapped[datetime | None]
    last_synced_by: Mapped[str | None]
    session_id: Mapped[UUID | None]
    needs_consent_since: Mapped[datetime | None]
    consent_refusal: Mapped[str | None]
    holder: Mapped[str | None]
    product: Mapped[str | None]
    refreshed_at: Mapped[datetime | None]
    refreshed_by: Mapped[str | None]
    syncing_since: Mapped[datetime | None]
    syncing_by: Mapped[str | None]


class Transaction(Base):
    """A booked entry of an account; `synced_by` is the job that brought it, None for older history."""

    __tablename__ = "transactions"
    __table_args__ = (
        UniqueConstraint("account_id", "entry_reference"),
        CheckConstraint("entry_reference <> ''", name="referenced"),
        CheckConstraint("currency ~ '^[A-Z]{3}$'", name="currency_form"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    account_id: Mapped[int] = mapped_column(ForeignKey("accounts.id"))
    entry_reference: Mapped[str]
    booked_on: Mapped[date]
    value_on: Mapped[date | None]
    amount: Mapped[Decimal]
    currency: Mapped[str]
    counterparty: Mapped[str | None]
    remittance: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(index=True)
    synced_by: Mapped[str | None]


class PendingTransaction(Base):
    """An entry that a bank has announced and not booked; each sync of an account replaces all of the account's."""

    __tablename__ = "pending_transactions"
    __table_args__ = (CheckConstraint("currency ~ '^[A-Z]{3}$'", name="currency_form"),)

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    account_id: Mapped[int] = mapped_column(ForeignKey("accounts.id"), index=True)
    entry_reference: Mapped[str | None]
    amount: Mapped[Decimal]
    currency: Mapped[str]
    counterparty: Mapped[str | None]
    remittance: Mapped[str]
    told_at: Mapped[datetime]
    told_by: Mapped[str]


class Attachment(Base):
    """An uploaded receipt. All `..._read` columns are empty until a job has read it or failed to."""

    __tablename__ = "attachments"
    __table_args__ = (
        CheckConstraint("path <> '' AND path !~ '^/' AND path !~ '[.][.]'", name="path_inside_folder"),
        CheckConstraint(_one_of("layout", Layout), name="known_layout"),
        CheckConstraint("(read_at IS NULL) = (read_by IS NULL)", name="read_by_a_job"),
        CheckConstraint(
            "read_at IS NOT NULL OR num_nonnulls(vendor_read, date_read, total_read, read_error) = 0",
            name="nothing_before_reading",
        ),
        CheckConstraint(
            "read_error IS NULL OR num_nonnulls(vendor_read, date_read, total_read) = 0",
            name="error_or_facts",
        ),
        CheckConstraint("total_read > 0", name="total_above_zero"),
    )

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    tenant_id: Mapped[int] = mapped_column(ForeignKey("tenants.id"), index=True)
    path: Mapped[str] = mapped_column(unique=True)
    layout: Mapped[str]
    uploaded_at: Mapped[datetime]
    vendor_read: Mapped[str | None]
    date_read: Mapped[date | None]
    total_read: Mapped[Decimal | None]
    read_at: Mapped[datetime | None]
    read_by: Mapped[str | None]
    read_error: Mapped[str | None]


class AttachmentTruth(Base):
    """What was printed on a drawn receipt. Only the judge of accuracy looks at it, no reading code."""

    __tablename__ = "attachment_truth"
    __table_args__ = (CheckConstraint("total > 0", name="total_above_zero"),)

    attachment_id: Mapped[int] = mapped_column(ForeignKey("attachments.id"), primary_key=True)
    vendor: Mapped[str]
    issued_on: Mapped[date]
    total: Mapped[Decimal]


class AgentRun(Base):
    """What an agent prepared, a person approved, and the filing gateway gets at most once.

    The key is written before the gateway is called and never changes; a run that was submitted has a filing.
    `begun_at` is when the latest attempt to file it began.
    """

    __tablename__ = "agent_runs"
    __table_args__ = (
        CheckConstraint(_one_of("kind", RunKind), name="known_kind"),
        CheckConstraint(_one_of("state", RunState), name="known_state"),
        CheckConstraint("(state = 'approved') = (filing_key IS NULL)", name="key_before_call"),
        CheckConstraint("(filing_key IS NULL) = (begun_at IS NULL)", name="begun_at_an_instant"),
        CheckConstraint("(state = 'submitted') = (submitted_at IS NOT NULL)", name="submitted_at_an_instant"),
        CheckConstraint("(submitted_at IS NULL) = (filing_id IS NULL)", name="submitted_with_a_filing"),
        CheckConstraint("filing_key <> ''", name="key_not_empty"),
        UniqueConstraint("id", "filing_key"),  # what a filing refers to
        # Submitted means: there is a filing, and it is this run's own.
        ForeignKeyConstraint(["id", "filing_id"], ["filings.run_id", "filings.gateway_filing_id"], use_alter=True),
    )

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    tenant_id: Mapped[int] = mapped_column(ForeignKey("tenants.id"), index=True)
    kind: Mapped[str]
    period: Mapped[str]
    approved_at: Mapped[datetime]
    state: Mapped[str]
    filing_key: Mapped[str | None] = mapped_column(unique=True)
    filing_id: Mapped[str | None] = mapped_column(unique=True)
    requested_at: Mapped[datetime | None]
    begun_at: Mapped[datetime | None]
    submitted_at: Mapped[datetime | None] = mapped_column(index=True)
    job_id: Mapped[str | None]


class Filing(Base):
    """What the gateway accepted: one a run, under the run's own key."""

    __tablename__ = "filings"
    __table_args__ = (
        ForeignKeyConstraint(["run_id", "key"], ["agent_runs.id", "agent_runs.filing_key"]),
        UniqueConstraint("run_id", "gateway_filing_id"),
    )

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    run_id: Mapped[int] = mapped_column(unique=True)
    gateway_filing_id: Mapped[str] = mapped_column(unique=True)
    key: Mapped[str] = mapped_column(unique=True)
    accepted_at: Mapped[datetime]

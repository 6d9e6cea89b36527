"""Consents and details of accounts, and pending entries; forward only."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_SCHEMA = "nightshift"


def upgrade() -> None:
    """Add the columns and the table."""
    _extend_accounts()
    _create_pending_transactions()


def _extend_accounts() -> None:
    for column in (
        sa.Column("session_id", sa.Uuid(), nullable=True),
        sa.Column("needs_consent_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("consent_refusal", sa.Text(), nullable=True),
        sa.Column("holder", sa.Text(), nullable=True),
        sa.Column("product", sa.Text(), nullable=True),
        sa.Column("refreshed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("refreshed_by", sa.Text(), nullable=True),
    ):
        op.add_column("accounts", column, schema=_SCHEMA)
    op.create_check_constraint(
        op.f("ck_accounts_refused_with_a_word"),
        "accounts",
        "(needs_consent_since IS NULL) = (consent_refusal IS NULL)",
        schema=_SCHEMA,
    )
    op.create_check_constraint(
        op.f("ck_accounts_refreshed_by_a_job"),
        "accounts",
        "(refreshed_at IS NULL) = (refreshed_by IS NULL)",
        schema=_SCHEMA,
    )


def _create_pending_transactions() -> None:
    op.create_table(
        "pending_transactions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("entry_reference", sa.Text(), nullable=True),
        sa.Column("amount", sa.Numeric(precision=14, scale=2), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("counterparty", sa.Text(), nullable=True),
        sa.Column("remittance", sa.Text(), nullable=False),
        sa.Column("told_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("told_by", sa.Text(), nullable=False),
        sa.CheckConstraint("currency ~ '^[A-Z]{3}$'", name=op.f("ck_pending_transactions_currency_form")),
        sa.ForeignKeyConstraint(
            ["account_id"], ["nightshift.accounts.id"], name=op.f("fk_pending_transactions_account_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pending_transactions")),
        schema=_SCHEMA,
    )
    op.create_index(
        op.f("ix_pending_transactions_account_id"),
        "pending_transactions",
        ["account_id"],
        unique=False,
        schema=_SCHEMA,
    )

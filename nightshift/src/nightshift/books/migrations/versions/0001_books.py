"""The first books: tenants, accounts, transactions, attachments, agent runs, filings; forward only."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_SCHEMA = "nightshift"


def upgrade() -> None:
    """Create all tables."""
    _create_tenants()
    _create_accounts()
    _create_transactions()
    _create_attachments()
    _create_attachment_truth()
    _create_agent_runs()
    _create_filings()


def _create_tenants() -> None:
    op.create_table(
        "tenants",
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.CheckConstraint("name <> ''", name=op.f("ck_tenants_named")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tenants")),
        sa.UniqueConstraint("name", name=op.f("uq_tenants_name")),
        schema=_SCHEMA,
    )


def _create_accounts() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("tenant_id", sa.Integer(), nullable=False),
        sa.Column("aggregator_uid", sa.Uuid(), nullable=False),
        sa.Column("iban", sa.Text(), nullable=False),
        sa.Column("bank_name", sa.Text(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("consent_valid_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("balance", sa.Numeric(precision=14, scale=2), nullable=True),
        sa.Column("last_synced_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_synced_by", sa.Text(), nullable=True),
        sa.CheckConstraint("currency ~ '^[A-Z]{3}$'", name=op.f("ck_accounts_currency_form")),
        sa.CheckConstraint("iban ~ '^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$'", name=op.f("ck_accounts_iban_form")),
        sa.CheckConstraint(
            "last_synced_at IS NULL OR balance IS NOT NULL", name=op.f("ck_accounts_synced_with_balance")
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["nightshift.tenants.id"], name=op.f("fk_accounts_tenant_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_accounts")),
        sa.UniqueConstraint("aggregator_uid", name=op.f("uq_accounts_aggregator_uid")),
        sa.UniqueConstraint("iban", name=op.f("uq_accounts_iban")),
        schema=_SCHEMA,
    )
    op.create_index(op.f("ix_accounts_tenant_id"), "accounts", ["tenant_id"], unique=False, schema=_SCHEMA)


def _create_transactions() -> None:
    op.create_table(
        "transactions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("entry_reference", sa.Text(), nullable=False),
        sa.Column("booked_on", sa.Date(), nullable=False),
        sa.Column("value_on", sa.Date(), nullable=True),
        sa.Column("amount", sa.Numeric(precision=14, scale=2), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("counterparty", sa.Text(), nullable=True),
        sa.Column("remittance", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("synced_by", sa.Text(), nullable=True),
        sa.CheckConstraint("currency ~ '^[A-Z]{3}$'", name=op.f("ck_transactions_currency_form")),
        sa.CheckConstraint("entry_reference <> ''", name=op.f("ck_transactions_referenced")),
        sa.ForeignKeyConstraint(["account_id"], ["nightshift.accounts.id"], name=op.f("fk_transactions_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_transactions")),
        sa.UniqueConstraint("account_id", "entry_reference", name=op.f("uq_transactions_account_id_entry_reference")),
        schema=_SCHEMA,
    )
    op.create_index(op.f("ix_transactions_created_at"), "transactions", ["created_at"], unique=False, schema=_SCHEMA)


def _create_attachments() -> None:
    op.create_table(
        "attachments",
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("tenant_id", sa.Integer(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("layout", sa.Text(), nullable=False),
        sa.Column("uploaded_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("vendor_read", sa.Text(), nullable=True),
        sa.Column("date_read", sa.Date(), nullable=True),
        sa.Column("total_read", sa.Numeric(precision=14, scale=2), nullable=True),
        sa.Column("read_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("read_by", sa.Text(), nullable=True),
        sa.Column("read_error", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "layout IN ('supermarket', 'restaurant', 'fuel', 'letter', 'shop', 'parking')",
            name=op.f("ck_attachments_known_layout"),
        ),
        sa.CheckConstraint(
            "path <> '' AND path !~ '^/' AND path !~ '[.][.]'", name=op.f("ck_attachments_path_inside_folder")
        ),
        sa.CheckConstraint("(read_at IS NULL) = (read_by IS NULL)", name=op.f("ck_attachments_read_by_a_job")),
        sa.CheckConstraint(
            "read_at IS NOT NULL OR num_nonnulls(vendor_read, date_read, total_read, read_error) = 0",
            name=op.f("ck_attachments_nothing_before_reading"),
        ),
        sa.CheckConstraint(
            "read_error IS NULL OR num_nonnulls(vendor_read, date_read, total_read) = 0",
            name=op.f("ck_attachments_error_or_facts"),
        ),
        sa.CheckConstraint("total_read > 0", name=op.f("ck_attachments_total_above_zero")),
        sa.ForeignKeyConstraint(["tenant_id"], ["nightshift.tenants.id"], name=op.f("fk_attachments_tenant_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attachments")),
        sa.UniqueConstraint("path", name=op.f("uq_attachments_path")),
        schema=_SCHEMA,
    )
    op.create_index(op.f("ix_attachments_tenant_id"), "attachments", ["tenant_id"], unique=False, schema=_SCHEMA)


def _create_attachment_truth() -> None:
    op.create_table(
        "attachment_truth",
        sa.Column("attachment_id", sa.Integer(), nullable=False),
        sa.Column("vendor", sa.Text(), nullable=False),
        sa.Column("issued_on", sa.Date(), nullable=False),
        sa.Column("total", sa.Numeric(precision=14, scale=2), nullable=False),
        sa.CheckConstraint("total > 0", name=op.f("ck_attachment_truth_total_above_zero")),
        sa.ForeignKeyConstraint(
            ["attachment_id"], ["nightshift.attachments.id"], name=op.f("fk_attachment_truth_attachment_id")
        ),
        sa.PrimaryKeyConstraint("attachment_id", name=op.f("pk_attachment_truth")),
        schema=_SCHEMA,
    )


def _create_agent_runs() -> None:
    op.create_table(
        "agent_runs",
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("tenant_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("approved_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("filing_key", sa.Text(), nullable=True),
        sa.Column("filing_id", sa.Text(), nullable=True),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("submitted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.CheckConstraint("(state = 'approved') = (filing_key IS NULL)", name=op.f("ck_agent_runs_key_before_call")),
        sa.CheckConstraint(
            "(state = 'submitted') = (submitted_at IS NOT NULL)", name=op.f("ck_agent_runs_submitted_at_an_instant")
        ),
        sa.CheckConstraint("filing_key <> ''", name=op.f("ck_agent_runs_key_not_empty")),
        sa.CheckConstraint(
            "kind IN ('vat_return', 'ec_sales_list', 'wage_tax_return', 'intrastat_report')",
            name=op.f("ck_agent_runs_known_kind"),
        ),
        sa.CheckConstraint(
            "state IN ('approved', 'submitting', 'submitted', 'failed')", name=op.f("ck_agent_runs_known_state")
        ),
        sa.CheckConstraint(
            "(submitted_at IS NULL) = (filing_id IS NULL)", name=op.f("ck_agent_runs_submitted_with_a_filing")
        ),
        sa.ForeignKeyConstraint(
            ["id", "filing_id"],
            ["nightshift.filings.run_id", "nightshift.filings.gateway_filing_id"],
            name=op.f("fk_agent_runs_id"),
            use_alter=True,
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["nightshift.tenants.id"], name=op.f("fk_agent_runs_tenant_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agent_runs")),
        sa.UniqueConstraint("filing_id", name=op.f("uq_agent_runs_filing_id")),
        sa.UniqueConstraint("filing_key", name=op.f("uq_agent_runs_filing_key")),
        sa.UniqueConstraint("id", "filing_key", name=op.f("uq_agent_runs_id_filing_key")),
        schema=_SCHEMA,
    )
    op.create_index(op.f("ix_agent_runs_submitted_at"), "agent_runs", ["submitted_at"], unique=False, schema=_SCHEMA)
    op.create_index(op.f("ix_agent_runs_tenant_id"), "agent_runs", ["tenant_id"], unique=False, schema=_SCHEMA)


def _create_filings() -> None:
    op.create_table(
        "filings",
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("gateway_filing_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("accepted_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id", "key"],
            ["nightshift.agent_runs.id", "nightshift.agent_runs.filing_key"],
            name=op.f("fk_filings_run_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_filings")),
        sa.UniqueConstraint("gateway_filing_id", name=op.f("uq_filings_gateway_filing_id")),
        sa.UniqueConstraint("key", name=op.f("uq_filings_key")),
        sa.UniqueConstraint("run_id", "gateway_filing_id", name=op.f("uq_filings_run_id_gateway_filing_id")),
        sa.UniqueConstraint("run_id", name=op.f("uq_filings_run_id")),
        schema=_SCHEMA,
    )
    op.create_foreign_key(
        op.f("fk_agent_runs_id"),
        "agent_runs",
        "filings",
        ["id", "filing_id"],
        ["run_id", "gateway_filing_id"],
        source_schema=_SCHEMA,
        referent_schema=_SCHEMA,
    )

"""Which syncs and submissions are under way, and since when; forward only."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_SCHEMA = "nightshift"


def upgrade() -> None:
    """Add the columns. A submission that was begun before they were there counts from its approval."""
    for table, column in (
        ("accounts", sa.Column("syncing_since", sa.DateTime(timezone=True), nullable=True)),
        ("accounts", sa.Column("syncing_by", sa.Text(), nullable=True)),
        ("agent_runs", sa.Column("begun_at", sa.DateTime(timezone=True), nullable=True)),
    ):
        op.add_column(table, column, schema=_SCHEMA)
    op.execute("UPDATE nightshift.agent_runs SET begun_at = approved_at WHERE filing_key IS NOT NULL")
    op.create_check_constraint(
        op.f("ck_accounts_syncing_by_a_job"),
        "accounts",
        "(syncing_since IS NULL) = (syncing_by IS NULL)",
        schema=_SCHEMA,
    )
    op.create_check_constraint(
        op.f("ck_agent_runs_begun_at_an_instant"),
        "agent_runs",
        "(filing_key IS NULL) = (begun_at IS NULL)",
        schema=_SCHEMA,
    )

"""The first tables: occurrences, fan-outs, endings, presence, readings."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create them."""
    _occurrences()
    _jobs()
    _sensed()


def _occurrences() -> None:
    op.create_table(
        "occurrences",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("entry", _name(), nullable=False),
        sa.Column("task", sa.Text, nullable=False),
        sa.Column("args", postgresql.JSON, nullable=False),
        sa.Column("kwargs", postgresql.JSON, nullable=False),
        sa.Column("lane", sa.Text),
        sa.Column("elastic", sa.Boolean, nullable=False),
        sa.Column("due_at", _instant(), nullable=False),
        sa.Column("start_by", _instant(), nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("published_at", _instant()),
        sa.Column("started_at", _instant()),
        sa.Column("ended_at", _instant()),
        sa.UniqueConstraint("entry", "due_at", name="occurrences_entry_due_at_key"),
    )
    op.create_index("occurrences_due_at_entry_idx", "occurrences", ["due_at", "entry"])
    op.create_index(
        "occurrences_open_idx",
        "occurrences",
        ["due_at", "entry"],
        postgresql_where=sa.text("state IN ('due', 'queued', 'running')"),
    )
    op.create_table(
        "watermarks",
        sa.Column("entry", _name(), primary_key=True),
        sa.Column("seen_until", _instant(), nullable=False),
    )


def _jobs() -> None:
    op.create_table(
        "fan_out_jobs",
        sa.Column("job", _name(), primary_key=True),
        sa.Column("occurrence", sa.Uuid, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("settled_at", _instant()),
    )
    op.create_index("fan_out_jobs_occurrence_idx", "fan_out_jobs", ["occurrence", "job", "state"])
    op.create_table(
        "endings",
        sa.Column("job", _name(), primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("task", sa.Text, nullable=False),
        sa.Column("lane", sa.Text),
        sa.Column("at", _instant(), nullable=False),
    )
    op.create_index("endings_at_idx", "endings", ["at"])


def _sensed() -> None:
    op.create_table(
        "presence",
        sa.Column("worker", _name(), primary_key=True),
        sa.Column("boot", sa.Uuid, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("started_at", _instant(), nullable=False),
        sa.Column("refreshed_at", _instant(), nullable=False),
        sa.Column("lives_for", sa.Interval, nullable=False),
        sa.Column("lanes", postgresql.JSONB, nullable=False),
    )
    op.create_table(
        "readings",
        sa.Column("at", _instant(), nullable=False),
        sa.Column("lane", _name(), nullable=False),
        sa.Column("ready", sa.Integer),
        sa.Column("running", sa.Integer),
        sa.Column("slots", sa.Integer),
        sa.Column("workers", sa.Integer),
        sa.Column("oldest_age", sa.Interval),
        sa.PrimaryKeyConstraint("at", "lane", name="readings_pkey"),
    )


def _name() -> sa.Text:
    return sa.Text(collation="C")


def _instant() -> postgresql.TIMESTAMP:
    return postgresql.TIMESTAMP(timezone=True)

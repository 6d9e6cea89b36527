"""What is kept of jobs whose bodies run under a lease; groups and chords that are open."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create them."""
    op.create_table(
        "under_way",
        sa.Column("job", _name(), primary_key=True),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("task", sa.Text, nullable=False),
        sa.Column("lane", _name()),
        sa.Column("lease", _name(), nullable=False),
        sa.Column("key", _name()),
        *_message(),
    )
    op.create_table(
        "bundles",
        sa.Column("id", _name(), primary_key=True),
        sa.Column("members", postgresql.JSON, nullable=False),
        sa.Column("body", postgresql.JSON),
        sa.Column("callback", sa.Text),
        sa.Column("noted_at", _instant(), nullable=False),
        sa.Column("start_by", _instant()),
        sa.Column("kept_until", _instant()),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("closed_at", _instant()),
    )
    op.create_index("bundles_open_idx", "bundles", ["noted_at", "id"], postgresql_where=sa.text("state = 'open'"))


def _message() -> list[sa.Column[Any]]:
    return [
        sa.Column("queue", sa.Text),
        sa.Column("headers", postgresql.JSON),
        sa.Column("body", sa.LargeBinary),
        sa.Column("content_type", sa.Text),
        sa.Column("content_encoding", sa.Text),
        sa.Column("properties", postgresql.JSON),
    ]


def _name() -> sa.Text:
    return sa.Text(collation="C")


def _instant() -> postgresql.TIMESTAMP:
    return postgresql.TIMESTAMP(timezone=True)

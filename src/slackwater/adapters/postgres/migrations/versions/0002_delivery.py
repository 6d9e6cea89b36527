"""Tables of delivery: runs, keys, leases and their pulse, holds, dead letters, pauses, sweeps."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create them."""
    _runs()
    _leases()
    _holds()
    _dead_letters()
    _rounds()
    op.add_column("readings", sa.Column("unacked", sa.Integer))


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("job", _name(), primary_key=True),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("handed_back", sa.Boolean, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("changed_at", _instant(), nullable=False),
    )
    op.create_index("runs_changed_at_idx", "runs", ["changed_at"])
    op.create_table(
        "keys",
        sa.Column("name", _name(), primary_key=True),
        sa.Column("job", _name(), nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("digest", sa.Text),
        sa.Column("lease", _name()),
        sa.Column("announced_at", _instant()),
        sa.Column("ended_at", _instant()),
        sa.Column("changed_at", _instant(), nullable=False),
    )
    op.create_index("keys_changed_at_idx", "keys", ["changed_at"])


def _leases() -> None:
    op.execute(sa.schema.CreateSequence(sa.Sequence("fences")))
    op.create_table(
        "leases",
        sa.Column("name", _name(), primary_key=True),
        sa.Column("job", _name(), nullable=False),
        sa.Column("boot", sa.Uuid, nullable=False),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("expires_at", _instant(), nullable=False),
        sa.Column("lives_for", sa.Interval, nullable=False),
        sa.Column("taken_at", _instant()),
    )
    op.create_index("leases_boot_idx", "leases", ["boot", "job"])
    op.create_table(
        "pulse",
        sa.Column("one", sa.Boolean, primary_key=True),
        sa.Column("at", _instant(), nullable=False),
        sa.Column("up_since", _instant(), nullable=False),
        sa.Column("lives_for", sa.Interval, nullable=False),
    )
    op.execute("INSERT INTO pulse VALUES (true, clock_timestamp(), clock_timestamp(), '30 s')")


def _holds() -> None:
    op.create_table(
        "holds",
        sa.Column("job", _name(), primary_key=True),
        sa.Column("task", sa.Text, nullable=False),
        sa.Column("lane", _name(), nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("not_before", _instant(), nullable=False),
        sa.Column("waits_for", _name()),
        sa.Column("start_by", _instant()),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("held_at", _instant(), nullable=False),
        sa.Column("claimed_by", sa.Uuid),
        sa.Column("claimed_until", _instant()),
        *_message(nullable=False),
    )
    op.create_index("holds_lane_idx", "holds", ["lane", "not_before", "held_at", "job"])
    op.create_index(
        "holds_waiting_idx",
        "holds",
        ["lane", "not_before", "held_at", "job"],
        postgresql_where=sa.text("waits_for IS NOT NULL"),
    )
    op.create_index(
        "holds_waits_for_idx", "holds", ["waits_for", "not_before"], postgresql_where=sa.text("waits_for IS NOT NULL")
    )
    op.create_index("holds_start_by_idx", "holds", ["start_by"], postgresql_where=sa.text("start_by IS NOT NULL"))


def _dead_letters() -> None:
    op.create_table(
        "dead_letters",
        sa.Column("job", _name(), primary_key=True),
        sa.Column("task", sa.Text, nullable=False),
        sa.Column("lane", _name()),
        sa.Column("tenant", sa.Text),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("cause", _name(), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("traceback", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("published_at", _instant()),
        sa.Column("buried_at", _instant(), nullable=False),
        sa.Column("replayed_as", _name()),
        sa.Column("replay_of", _name()),
        sa.Column("discarded_at", _instant()),
        *_message(nullable=True),
    )
    op.create_index("dead_letters_buried_at_idx", "dead_letters", ["buried_at"])
    op.create_index("dead_letters_lane_cause_idx", "dead_letters", ["lane", "cause", "buried_at"])
    op.create_index(
        "dead_letters_whole_idx",
        "dead_letters",
        ["lane", "cause"],
        postgresql_where=sa.text("queue IS NOT NULL AND replayed_as IS NULL AND discarded_at IS NULL"),
    )


def _rounds() -> None:
    op.create_table(
        "canaries",
        sa.Column("lane", _name(), primary_key=True),
        sa.Column("sent_at", _instant(), nullable=False),
        sa.Column("answered_at", _instant()),
        sa.Column("worker", sa.Text),
    )
    op.create_table(
        "pauses",
        sa.Column("lane", _name(), primary_key=True),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("since", _instant(), nullable=False),
        sa.Column("until", _instant(), nullable=False),
    )
    op.create_table(
        "sweeps",
        sa.Column("sweeper", _name(), primary_key=True),
        sa.Column("at", _instant(), nullable=False),
        sa.Column("found_count", sa.Integer, nullable=False),
        sa.Column("recovered_count", sa.Integer, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("error", sa.Text, nullable=False),
    )


def _message(*, nullable: bool) -> list[sa.Column[Any]]:
    return [
        sa.Column("queue", sa.Text, nullable=nullable),
        sa.Column("headers", postgresql.JSON, nullable=nullable),
        sa.Column("body", sa.LargeBinary, nullable=nullable),
        sa.Column("content_type", sa.Text, nullable=nullable),
        sa.Column("content_encoding", sa.Text, nullable=nullable),
        sa.Column("properties", postgresql.JSON, nullable=nullable),
    ]


def _name() -> sa.Text:
    return sa.Text(collation="C")


def _instant() -> postgresql.TIMESTAMP:
    return postgresql.TIMESTAMP(timezone=True)

"""The tables. They name no schema: the engine puts in its own, so that two environments can share one database."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import (
    Boolean,
    Column,
    Dialect,
    Index,
    Integer,
    Interval,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
)
from sqlalchemy.dialects.postgresql import JSON, JSONB, TIMESTAMP
from sqlalchemy.types import TypeDecorator


class Instant(TypeDecorator[datetime]):
    """A point in time: aware, and in UTC however the session reads."""

    impl = TIMESTAMP(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Refuse an instant without a zone: the session's zone would be guessed for it."""
        if value is not None and value.tzinfo is None:
            raise ValueError(f"an instant without a zone: {value.isoformat()}")
        return value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Return it in UTC."""
        return None if value is None else value.astimezone(UTC)


NAME = Text(collation="C")
"""Text that is sorted by code point, as Python sorts, whatever the database's locale."""

metadata = MetaData()

occurrences = Table(
    "occurrences",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("entry", NAME, nullable=False),
    Column("task", Text, nullable=False),
    # `json` keeps the order of keys, which `jsonb` does not.
    Column("args", JSON, nullable=False),
    Column("kwargs", JSON, nullable=False),
    Column("lane", Text),
    Column("elastic", Boolean, nullable=False),
    Column("due_at", Instant, nullable=False),
    Column("start_by", Instant, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text),
    Column("published_at", Instant),
    Column("started_at", Instant),
    Column("ended_at", Instant),
    UniqueConstraint("entry", "due_at", name="occurrences_entry_due_at_key"),
)
Index("occurrences_due_at_entry_idx", occurrences.c.due_at, occurrences.c.entry)
Index(
    "occurrences_open_idx",
    occurrences.c.due_at,
    occurrences.c.entry,
    postgresql_where=occurrences.c.state.in_(["due", "queued", "running"]),
)

watermarks = Table(
    "watermarks",
    metadata,
    Column("entry", NAME, primary_key=True),
    Column("seen_until", Instant, nullable=False),
)

fan_out_jobs = Table(
    "fan_out_jobs",
    metadata,
    Column("job", NAME, primary_key=True),
    Column("occurrence", Uuid, nullable=False),
    Column("state", Text, nullable=False),
    Column("settled_at", Instant),
)
# Serves both the count by state and the walk over what is not settled, each from the index alone.
Index("fan_out_jobs_occurrence_idx", fan_out_jobs.c.occurrence, fan_out_jobs.c.job, fan_out_jobs.c.state)

endings = Table(
    "endings",
    metadata,
    Column("job", NAME, primary_key=True),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("task", Text, nullable=False),
    Column("lane", Text),
    Column("at", Instant, nullable=False),
)
Index("endings_at_idx", endings.c.at)

presence = Table(
    "presence",
    metadata,
    Column("worker", NAME, primary_key=True),
    Column("boot", Uuid, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("started_at", Instant, nullable=False),
    Column("refreshed_at", Instant, nullable=False),
    Column("lives_for", Interval, nullable=False),
    Column("lanes", JSONB, nullable=False),
)

readings = Table(
    "readings",
    metadata,
    Column("at", Instant, nullable=False),
    Column("lane", NAME, nullable=False),
    Column("ready", Integer),
    Column("running", Integer),
    Column("slots", Integer),
    Column("workers", Integer),
    Column("oldest_age", Interval),
    PrimaryKeyConstraint("at", "lane", name="readings_pkey"),
)

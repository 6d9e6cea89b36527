"""The tables. They name no schema: the engine puts in its own, so that two environments can share one database."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Index,
    Integer,
    Interval,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Sequence,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    and_,
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
    Column("unacked", Integer),
    Column("running", Integer),
    Column("slots", Integer),
    Column("workers", Integer),
    Column("oldest_age", Interval),
    PrimaryKeyConstraint("at", "lane", name="readings_pkey"),
)

runs = Table(
    "runs",
    metadata,
    Column("job", NAME, primary_key=True),
    Column("tries", Integer, nullable=False),
    # 0 only inside the transaction that makes the row in order to lock it.
    Column("attempts", Integer, nullable=False),
    Column("handed_back", Boolean, nullable=False),
    Column("state", Text, nullable=False),
    Column("changed_at", Instant, nullable=False),
)
Index("runs_changed_at_idx", runs.c.changed_at)

keys = Table(
    "keys",
    metadata,
    Column("name", NAME, primary_key=True),
    # Empty only inside the transaction that makes the row in order to lock it.
    Column("job", NAME, nullable=False),
    Column("state", Text, nullable=False),
    Column("digest", Text),
    Column("lease", NAME),
    Column("announced_at", Instant),
    Column("ended_at", Instant),
    Column("changed_at", Instant, nullable=False),
)
Index("keys_changed_at_idx", keys.c.changed_at)

fences = Sequence("fences", metadata=metadata)
"""One for all leases: a lease that is freed is deleted, and its next taking still gets a higher fence."""

leases = Table(
    "leases",
    metadata,
    Column("name", NAME, primary_key=True),
    Column("job", NAME, nullable=False),
    Column("boot", Uuid, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("lives_for", Interval, nullable=False),
    Column("taken_at", Instant),
)
Index("leases_boot_idx", leases.c.boot, leases.c.job)

pulse = Table(
    "pulse",
    metadata,
    Column("one", Boolean, primary_key=True),
    Column("at", Instant, nullable=False),
    Column("up_since", Instant, nullable=False),
    Column("lives_for", Interval, nullable=False),
)
"""When anybody gave a sign of life last, and since when somebody always has; one row."""


def _message_columns(*, nullable: bool) -> list[Column[Any]]:
    # `json`, not `jsonb`: headers are sent again in the order in which they came.
    return [
        Column("queue", Text, nullable=nullable),
        Column("headers", JSON, nullable=nullable),
        Column("body", LargeBinary, nullable=nullable),
        Column("content_type", Text, nullable=nullable),
        Column("content_encoding", Text, nullable=nullable),
        Column("properties", JSON, nullable=nullable),
    ]


under_way = Table(
    "under_way",
    metadata,
    Column("job", NAME, primary_key=True),
    Column("tries", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("task", Text, nullable=False),
    Column("lane", NAME),
    Column("lease", NAME, nullable=False),
    Column("key", NAME),
    *_message_columns(nullable=True),
)
"""Jobs whose bodies run under a lease; a row goes with the end of its job, so there are about as many as bodies."""

holds = Table(
    "holds",
    metadata,
    Column("job", NAME, primary_key=True),
    Column("task", Text, nullable=False),
    Column("lane", NAME, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("not_before", Instant, nullable=False),
    Column("waits_for", NAME),
    Column("start_by", Instant),
    Column("reason", Text, nullable=False),
    Column("held_at", Instant, nullable=False),
    Column("claimed_by", Uuid),
    Column("claimed_until", Instant),
    *_message_columns(nullable=False),
)
Index("holds_lane_idx", holds.c.lane, holds.c.not_before, holds.c.held_at, holds.c.job)
Index(
    "holds_waiting_idx",
    holds.c.lane,
    holds.c.not_before,
    holds.c.held_at,
    holds.c.job,
    postgresql_where=holds.c.waits_for.is_not(None),
)
Index("holds_waits_for_idx", holds.c.waits_for, holds.c.not_before, postgresql_where=holds.c.waits_for.is_not(None))
Index("holds_start_by_idx", holds.c.start_by, postgresql_where=holds.c.start_by.is_not(None))

dead_letters = Table(
    "dead_letters",
    metadata,
    Column("job", NAME, primary_key=True),
    Column("task", Text, nullable=False),
    Column("lane", NAME),
    Column("tenant", Text),
    Column("state", Text, nullable=False),
    Column("cause", NAME, nullable=False),
    Column("reason", Text, nullable=False),
    Column("traceback", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("published_at", Instant),
    Column("buried_at", Instant, nullable=False),
    Column("replayed_as", NAME),
    Column("replay_of", NAME),
    Column("discarded_at", Instant),
    *_message_columns(nullable=True),
)
Index("dead_letters_buried_at_idx", dead_letters.c.buried_at)
# What counts against the limit of whole letters: never more rows than that limit for one lane and cause.
Index(
    "dead_letters_whole_idx",
    dead_letters.c.lane,
    dead_letters.c.cause,
    postgresql_where=and_(
        dead_letters.c.queue.is_not(None), dead_letters.c.replayed_as.is_(None), dead_letters.c.discarded_at.is_(None)
    ),
)
Index("dead_letters_lane_cause_idx", dead_letters.c.lane, dead_letters.c.cause, dead_letters.c.buried_at)

bundles = Table(
    "bundles",
    metadata,
    Column("id", NAME, primary_key=True),
    Column("members", JSON, nullable=False),
    Column("body", JSON),
    Column("callback", Text),
    Column("noted_at", Instant, nullable=False),
    Column("start_by", Instant),
    Column("kept_until", Instant),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("closed_at", Instant),
)
Index("bundles_open_idx", bundles.c.noted_at, bundles.c.id, postgresql_where=bundles.c.state == "open")

pauses = Table(
    "pauses",
    metadata,
    Column("lane", NAME, primary_key=True),
    Column("cause", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("since", Instant, nullable=False),
    Column("until", Instant, nullable=False),
)

canaries = Table(
    "canaries",
    metadata,
    Column("lane", NAME, primary_key=True),
    Column("sent_at", Instant, nullable=False),
    Column("answered_at", Instant),
    Column("worker", Text),
)

sweeps = Table(
    "sweeps",
    metadata,
    Column("sweeper", NAME, primary_key=True),
    Column("at", Instant, nullable=False),
    Column("found_count", Integer, nullable=False),
    Column("recovered_count", Integer, nullable=False),
    Column("note", Text, nullable=False),
    Column("error", Text, nullable=False),
)

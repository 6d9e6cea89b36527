"""What was sensed: workers' signs of life and lanes' readings, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, delete, select
from sqlalchemy.dialects.postgresql import insert

from slackwater.adapters.postgres.batches import chosen
from slackwater.adapters.postgres.database import Database
from slackwater.adapters.postgres.pulse import beat
from slackwater.adapters.postgres.tables import presence as said
from slackwater.adapters.postgres.tables import readings as samples
from slackwater.core.reading import LaneCounts, LaneReading, Presence

_PRESENCE = [column.name for column in said.columns]
_READING = [column.name for column in samples.columns]
_COUNTS = frozenset(one.name for one in fields(LaneCounts))


class PostgresPresence:
    """The presence store; each act is one statement."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def refresh(self, presence: Presence) -> None:
        """Write one worker's row, and move the pulse; what an earlier start of the worker says late is dropped."""
        values = {name: getattr(presence, name) for name in _PRESENCE}
        values["lanes"] = {lane: _said(counts) for lane, counts in presence.lanes.items()}
        new = insert(said).values(values)
        statement = new.on_conflict_do_update(
            index_elements=["worker"],
            set_={name: new.excluded[name] for name in values if name != "worker"},
            where=said.c.started_at <= new.excluded.started_at,
        ).add_cte(beat(presence.lives_for).cte("beat"))
        self._database.run(lambda connection: connection.execute(statement))

    def all(self) -> Sequence[Presence]:
        """Return every row, also of workers that are gone, by worker."""
        query = select(said).order_by(said.c.worker)
        return [_presence(row) for row in self._database.run(lambda connection: connection.execute(query).all())]

    def forget(self, worker: str, *, boot: UUID) -> None:
        """Remove a worker's row at its orderly end, unless it has been started anew since."""
        statement = delete(said).where(said.c.worker == worker, said.c.boot == boot)
        self._database.run(lambda connection: connection.execute(statement))


class PostgresReadings:
    """The reading store; each act is one statement."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, readings: Sequence[LaneReading]) -> None:
        """Record; the same lane and instant twice is one."""
        columns = [*samples.columns]
        rows = [tuple(getattr(one, name) for name in _READING) for one in readings]
        statement = insert(samples).from_select(columns, chosen(columns, rows)).on_conflict_do_nothing()
        if rows:
            self._database.run(lambda connection: connection.execute(statement))

    def between(self, since: datetime, until: datetime) -> Sequence[LaneReading]:
        """Return those of [since, until), by instant then lane."""
        at, lane = samples.c.at, samples.c.lane
        query = select(samples).where(at >= since, at < until).order_by(at, lane)
        rows = self._database.run(lambda connection: connection.execute(query).all())
        return [LaneReading(**row._mapping) for row in rows]

    def prune(self, before: datetime) -> int:
        """Delete those before an instant; return how many."""
        statement = delete(samples).where(samples.c.at < before)
        return self._database.run(lambda connection: connection.execute(statement).rowcount)


def _presence(row: Row[Any]) -> Presence:
    values = dict(row._mapping)
    values["lanes"] = {lane: _counts(counts) for lane, counts in row.lanes.items()}
    return Presence(**values)


def _said(counts: LaneCounts) -> dict[str, Any]:
    return {**vars(counts), "expired": dict(counts.expired)}


def _counts(said: dict[str, Any]) -> LaneCounts:
    # A worker of a newer version may count more than this program knows of.
    return LaneCounts(**{name: value for name, value in said.items() if name in _COUNTS})

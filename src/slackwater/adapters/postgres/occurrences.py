"""Occurrences and watermarks in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, Text, Update, and_, case, cast, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert

from slackwater.adapters import arguments
from slackwater.adapters.postgres.batches import chosen
from slackwater.adapters.postgres.database import Database
from slackwater.adapters.postgres.tables import fan_out_jobs
from slackwater.adapters.postgres.tables import occurrences as table
from slackwater.adapters.postgres.tables import watermarks as marks
from slackwater.core.job import JobState
from slackwater.core.occurrence import OPEN_STATES, Occurrence, OccurrenceState, sources

_STORED = [*table.columns]
_NAMES = [column.name for column in _STORED]


class PostgresOccurrences:
    """The occurrence store; each act is one statement."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def watermarks(self) -> Mapping[str, datetime]:
        """Return each entry's watermark."""
        query = select(marks.c.entry, marks.c.seen_until)
        rows = self._database.run(lambda connection: connection.execute(query).all())
        return {row.entry: row.seen_until for row in rows}

    def admit(self, occurrences: Sequence[Occurrence], *, watermarks: Mapping[str, datetime]) -> frozenset[UUID]:
        """Record occurrences that are new and advance watermarks; return the ids that were new."""
        statement = (
            insert(table)
            .from_select(_STORED, chosen(_STORED, [_row(one) for one in occurrences]))
            .on_conflict_do_nothing()
            .returning(table.c.id)
            .add_cte(_advanced(watermarks).cte("advanced"))
        )
        return frozenset(self._database.run(lambda connection: connection.execute(statement).scalars().all()))

    def advance(self, occurrence: UUID, *, to: OccurrenceState, at: datetime, reason: str | None = None) -> bool:
        """Move an open occurrence on, by compare-and-set."""
        statement = _move(occurrence, to=to, at=at, reason=reason)
        return self._database.run(lambda connection: connection.execute(statement).one_or_none() is not None)

    def open(self) -> Sequence[Occurrence]:
        """Return those due, queued or running, oldest first."""
        return self._found(table.c.state.in_(sorted(OPEN_STATES)))

    def since(self, due_at: datetime) -> Sequence[Occurrence]:
        """Return those due at or after an instant of the calendar."""
        return self._found(table.c.due_at >= due_at)

    def get(self, occurrence: UUID) -> Occurrence | None:
        """Return one; None if there is none."""
        return next(iter(self._found(table.c.id == occurrence)), None)

    def _found(self, condition: ColumnElement[bool]) -> Sequence[Occurrence]:
        query = _query(condition)
        return [_occurrence(row) for row in self._database.run(lambda connection: connection.execute(query).all())]


def _advanced(watermarks: Mapping[str, datetime]) -> Any:
    columns = [marks.c.entry, marks.c.seen_until]
    new = insert(marks).from_select(columns, chosen(columns, list(watermarks.items())))
    later = func.greatest(marks.c.seen_until, new.excluded.seen_until)
    return new.on_conflict_do_update(index_elements=["entry"], set_={"seen_until": later}).returning(marks.c.entry)


def _move(occurrence: UUID, *, to: OccurrenceState, at: datetime, reason: str | None) -> Update:
    stamps = {OccurrenceState.QUEUED: table.c.published_at, OccurrenceState.RUNNING: table.c.started_at}
    stamp = table.c.ended_at if to.final else stamps.get(to)
    stamped = {} if stamp is None else {stamp.name: func.coalesce(stamp, literal(at, stamp.type))}
    why = literal(reason, Text)
    return (
        update(table)
        .where(and_(table.c.id == occurrence, table.c.state.in_(sorted(sources(to)))))
        .values(
            state=to.value,
            reason=case((table.c.state == to.value, func.coalesce(table.c.reason, why)), else_=why),
            **stamped,
        )
        .returning(table.c.id)
    )


def _query(condition: ColumnElement[bool]) -> Select[Any]:
    by_state = (
        select(fan_out_jobs.c.state, func.count().label("jobs"))
        .where(fan_out_jobs.c.occurrence == table.c.id)
        .group_by(fan_out_jobs.c.state)
        .correlate(table)
        .subquery("by_state")
    )
    counted = select(func.json_object_agg(by_state.c.state, by_state.c.jobs)).scalar_subquery()
    as_text = {"args", "kwargs"}
    columns = [cast(one, Text).label(one.name) if one.name in as_text else one for one in table.columns]
    return select(*columns, counted.label("jobs")).where(condition).order_by(table.c.due_at, table.c.entry)


def _row(one: Occurrence) -> tuple[Any, ...]:
    own = {
        "args": arguments.written(one.args, entry=one.entry),
        "kwargs": arguments.written(one.kwargs, entry=one.entry),
        "state": one.state.value,
    }
    return tuple(own[name] if name in own else getattr(one, name) for name in _NAMES)


def _occurrence(row: Row[Any]) -> Occurrence:
    values = dict(row._mapping)
    values["args"] = arguments.positional(row.args)
    values["kwargs"] = arguments.keywords(row.kwargs)
    values["state"] = OccurrenceState(row.state)
    values["jobs"] = {JobState(state): count for state, count in (row.jobs or {}).items()}
    return Occurrence(**values)

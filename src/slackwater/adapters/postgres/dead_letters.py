"""Dead letters and pauses of lanes in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Executable,
    FromClause,
    Integer,
    Row,
    Select,
    and_,
    case,
    cast,
    delete,
    func,
    literal,
    literal_column,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSON, insert

from slackwater.adapters import kept_messages
from slackwater.adapters.postgres import message_rows
from slackwater.adapters.postgres.batches import chosen, unnested
from slackwater.adapters.postgres.database import Database
from slackwater.adapters.postgres.pulse import durably
from slackwater.adapters.postgres.run_rows import names
from slackwater.adapters.postgres.tables import dead_letters as table
from slackwater.adapters.postgres.tables import pauses as paused
from slackwater.core.dead_letter import DeadLetter, Pause
from slackwater.core.job import JobState
from slackwater.ports.recovery import LetterFilter

_STORED = [*table.columns]
_OWN = ("job", "task", "lane", "tenant", "attempts", "tries", "published_at", "buried_at", "replayed_as", "replay_of")
_MESSAGE = tuple(message_rows.written(None))
_OPEN = and_(table.c.replayed_as.is_(None), table.c.discarded_at.is_(None))


class PostgresDeadLetters:
    """The dead-letter store; each act is one statement."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def bury(self, letters: Sequence[DeadLetter], *, full_per_cause: int) -> None:
        """Keep letters; the first of a job stays, and only so many of one lane and cause are kept whole."""
        first = {one.job: one for one in reversed(letters)}
        if first:
            rows = [(*_row(one), number) for number, one in enumerate(reversed(first.values()))]
            self._database.run(lambda connection: connection.execute(_buried(rows, full_per_cause)))

    def list(self, which: LetterFilter, *, limit: int) -> Sequence[DeadLetter]:
        """Return letters, newest first, at most `limit`."""
        query = _all().where(*_conditions(which)).order_by(table.c.buried_at.desc(), table.c.job).limit(limit)
        return self._found(query)

    def get(self, job: str) -> DeadLetter | None:
        """Return one, discarded ones too."""
        return next(iter(self._found(_all().where(table.c.job == job))), None)

    def mark_replayed(self, job: str, *, as_job: str) -> bool:
        """Record a replay before it is published; False where it was replayed otherwise, or discarded, before."""
        free = or_(table.c.replayed_as.is_(None), table.c.replayed_as == as_job)
        statement = (
            update(table)
            .where(table.c.job == job, table.c.discarded_at.is_(None), free)
            .values(replayed_as=as_job)
            .returning(table.c.job)
        )
        return self._database.run(lambda connection: connection.execute(statement).one_or_none() is not None)

    def discard(self, jobs: Sequence[str], *, at: datetime) -> int:
        """Take letters out of sight and drop their messages; return how many were open."""
        statement = (
            update(table)
            .where(table.c.job == names(jobs).any_(), table.c.discarded_at.is_(None))
            .values(discarded_at=at, **dict.fromkeys(_MESSAGE, null()))
            .returning(table.c.replayed_as.is_(None))
        )
        return self._database.run(lambda connection: sum(connection.execute(statement).scalars())) if jobs else 0

    def counts(self, *, since: datetime) -> Mapping[tuple[str | None, str], int]:
        """Return how many were buried since an instant, by lane and cause."""
        query = select(table.c.lane, table.c.cause, func.count().label("buried")).where(table.c.buried_at >= since)
        grouped = query.group_by(table.c.lane, table.c.cause)
        rows = self._database.run(lambda connection: connection.execute(grouped).all())
        return {(row.lane, row.cause): row.buried for row in rows}

    def prune(self, *, before: datetime) -> int:
        """Delete those buried before an instant; return how many."""
        statement = delete(table).where(table.c.buried_at < before)
        return self._database.run(lambda connection: connection.execute(statement).rowcount)

    def pause(self, pauses: Sequence[Pause]) -> Sequence[Pause]:
        """Pause lanes; return those that were not paused before. The others are paused until the later instant."""
        by_lane = {one.lane: one for one in reversed(pauses)}
        rows = [(one.lane, one.cause, one.reason, one.since, one.until) for _, one in sorted(by_lane.items())]
        if not rows:
            return []
        statement = _paused(rows)
        fresh = set(self._database.run(lambda connection: connection.execute(statement).scalars().all()))
        return [one for one in by_lane.values() if one.lane in fresh]

    def pauses(self) -> Sequence[Pause]:
        """Return the lanes that are paused, by lane."""
        query = select(paused).order_by(paused.c.lane)
        return [Pause(**row._mapping) for row in self._database.run(lambda connection: connection.execute(query).all())]

    def resume(self, lane: str) -> bool:
        """Let a lane work again; False where it was not paused."""
        statement = delete(paused).where(paused.c.lane == lane)
        return self._database.run(lambda connection: connection.execute(statement).rowcount > 0)

    def _found(self, query: Executable) -> Sequence[DeadLetter]:
        return [_read(row) for row in self._database.run(lambda connection: connection.execute(query).all())]


def _all() -> Select[Any]:
    return select(*message_rows.as_text(table))


def _conditions(which: LetterFilter) -> Sequence[ColumnElement[bool]]:
    asked = {table.c.lane: which.lane, table.c.task: which.task, table.c.cause: which.cause}
    conditions = [column == value for column, value in asked.items() if value is not None]
    if which.since is not None:
        conditions.append(table.c.buried_at >= which.since)
    return [*conditions, _OPEN] if which.open_only else conditions


def _buried(rows: Sequence[tuple[Any, ...]], full_per_cause: int) -> Executable:
    """Return the insertion; how many are whole already is counted in it, by lane and cause."""
    number = Column("number", Integer)
    batch = unnested([*_STORED, number], rows)
    known = select(literal(1)).select_from(table).where(table.c.job == batch.c.job).exists()
    new = select(batch).where(~known).subquery("new")
    turn = func.row_number().over(partition_by=[new.c.lane, new.c.cause, new.c.queue.is_(None)], order_by=new.c.number)
    before = (
        select(func.count())
        .select_from(table)
        .where(
            # IS NOT DISTINCT FROM would use no index.
            or_(table.c.lane == new.c.lane, and_(table.c.lane.is_(None), new.c.lane.is_(None))),
            table.c.cause == new.c.cause,
            table.c.queue.is_not(None),
            _OPEN,
        )
        .scalar_subquery()
    )
    counted = select(new, (turn + before <= full_per_cause).label("whole")).subquery("counted")
    values = [_value(counted, column) for column in _STORED]
    rows_ = select(*values).where(durably()).order_by(counted.c.job)
    return insert(table).from_select(_STORED, rows_).on_conflict_do_nothing()


def _value(row: FromClause, column: Column[Any]) -> ColumnElement[Any]:
    value = cast(row.c[column.name], JSON) if isinstance(column.type, JSON) else row.c[column.name]
    if column.name in _MESSAGE:
        return case((row.c.whole, value), else_=null())
    return case((row.c.whole, value), else_=literal("")) if column.name == "traceback" else value


def _row(one: DeadLetter) -> tuple[Any, ...]:
    values = {
        **{name: getattr(one, name) for name in _OWN},
        **message_rows.written(one.message),
        "state": one.state.value,
        **{name: kept_messages.legible(getattr(one, name)) for name in ("cause", "reason", "traceback")},
    }
    return tuple(values.get(column.name) for column in _STORED)


def _read(row: Row[Any]) -> DeadLetter:
    own = {name: getattr(row, name) for name in (*_OWN, "cause", "reason", "traceback")}
    return DeadLetter(**own, state=JobState(row.state), message=message_rows.read(row))


def _paused(rows: Sequence[tuple[Any, ...]]) -> Executable:
    columns = [*paused.columns]
    new = insert(paused).from_select(columns, chosen(columns, rows))
    later = func.greatest(paused.c.until, new.excluded.until)
    # In a row that is new, and not locked for an update, `xmax` is 0.
    fresh = case((literal_column("pauses.xmax = 0"), paused.c.lane))
    return new.on_conflict_do_update(index_elements=["lane"], set_={"until": later}).returning(fresh)

"""Jobs that wait in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    Column,
    ColumnElement,
    Executable,
    FromClause,
    Integer,
    Select,
    Text,
    Uuid,
    and_,
    bindparam,
    delete,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
    tuple_,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, Insert, insert

from slackwater.adapters import kept_messages
from slackwater.adapters.postgres import message_rows, under_way
from slackwater.adapters.postgres.batches import chosen
from slackwater.adapters.postgres.database import Database
from slackwater.adapters.postgres.pipeline import Statement, arrays, batch_of
from slackwater.adapters.postgres.pulse import durably, live, moment, quickly
from slackwater.adapters.postgres.run_rows import names
from slackwater.adapters.postgres.tables import Instant, holds, leases
from slackwater.core.message import Held
from slackwater.core.under_way import Start

_STORED = [*holds.columns]
_ROOM: list[Column[Any]] = [holds.c.lane, Column("room", Integer)]
_AGE = (holds.c.not_before, holds.c.held_at, holds.c.job)
_OLDEST = attrgetter("not_before", "held_at", "job")


class PostgresHolds:
    """The hold store; each act is one statement."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # Each worker claims every second, whether anything is held or not.
        self._claim = Statement.of(_claimed(), schema=database.schema)

    def hold(self, held: Sequence[Held]) -> None:
        """Keep jobs; one that is held already is replaced by a later try of it, or where it is claimed."""
        latest: dict[str, Held] = {}
        for one in held:
            known = latest.get(one.job)
            if known is None or known.tries < one.tries:
                latest[one.job] = one
        if latest:
            rows = [_row(one) for one in latest.values()]
            self._database.run(lambda connection: connection.execute(_held(chosen(_STORED, rows))))

    def take_back(self, lost: Mapping[Start, Held]) -> Sequence[str]:
        """Keep jobs that are lost while under way, each in one step with its run."""
        if not lost:
            return []
        runs = under_way.held_runs({start: held.waits_for or "" for start, held in lost.items()})
        chosen_rows = chosen(_STORED, [_row(one) for one in lost.values()])
        ours = chosen_rows.where(literal_column("batch.job").in_(select(runs.c.job)))
        statement = select(runs.c.job).add_cte(_held(ours).cte("held")).order_by(runs.c.job)
        rows = self._database.run(lambda connection: connection.execute(statement).all())
        return [row.job for row in rows]

    def claim(self, lanes: Mapping[str, int], *, boot: UUID, now: datetime, claimed_for: timedelta) -> Sequence[Held]:
        """Claim jobs whose time has come and whose lease is free, oldest first; waits for no other claimer."""
        wanted = sorted((lane, count) for lane, count in lanes.items() if count > 0)
        if not wanted:
            return []
        rows = self._database.pipe(
            lambda pipeline: pipeline.send(
                self._claim,
                **arrays(_ROOM, wanted, called="rooms"),
                lanes=[lane for lane, _ in wanted],
                now=now,
                boot=boot,
                until=now + claimed_for,
            ).fetchall(),
            repeatable=True,
        )
        return sorted((_read(row) for row in rows), key=_OLDEST)

    def released(self, jobs: Sequence[str], *, boot: UUID) -> None:
        """Remove claimed jobs that are published; what was held anew meanwhile stays."""
        statement = delete(holds).where(holds.c.job == names(jobs).any_(), holds.c.claimed_by == boot)
        if jobs:
            self._database.run(lambda connection: connection.execute(statement))

    def drop(self, jobs: Sequence[str]) -> Sequence[Held]:
        """Remove jobs, claimed or not; return those that there were, oldest first."""
        statement = delete(holds).where(holds.c.job == names(jobs).any_()).returning(*message_rows.as_text(holds))
        return self._found(statement, key=_OLDEST) if jobs else []

    def late(self, *, now: datetime, limit: int) -> Sequence[Held]:
        """Return jobs whose `start_by` has passed, at most `limit`, those first that passed it first."""
        query = _all().where(holds.c.start_by < now).order_by(holds.c.start_by, holds.c.job).limit(limit)
        return self._found(query)

    def find(self, jobs: Iterable[str]) -> Mapping[str, Held]:
        """Return those of the jobs that are held."""
        found = self._found(_all().where(holds.c.job == names(jobs).any_()))
        return {one.job: one for one in found}

    def counts(self) -> Mapping[str, int]:
        """Return how many are held, by lane.

        Read from an index alone, which for a million takes some 70 ms; a counter would be a row that all wait for.
        """
        query = select(holds.c.lane, func.count().label("held")).group_by(holds.c.lane)
        rows = self._database.run(lambda connection: connection.execute(query).all())
        return {row.lane: row.held for row in rows}

    def _found(self, statement: Executable, *, key: Any = None) -> list[Held]:
        rows = self._database.run(lambda connection: connection.execute(statement).all())
        found = [_read(row) for row in rows]
        return sorted(found, key=key) if key is not None else found


def _all() -> Select[Any]:
    return select(*message_rows.as_text(holds))


def _held(rows: Select[Any]) -> Insert:
    new = insert(holds).from_select(_STORED, rows.where(durably()))
    back = and_(new.excluded.tries == holds.c.tries, holds.c.claimed_by.is_not(None))
    return new.on_conflict_do_update(
        index_elements=["job"],
        set_={one.name: new.excluded[one.name] for one in _STORED if one.name != "job"},
        where=or_(new.excluded.tries > holds.c.tries, back),
    )


def _claimed() -> Executable:
    picked = _picked()
    return (
        update(holds)
        .where(holds.c.job == picked.c.job, quickly())
        .values(claimed_by=bindparam("boot", type_=Uuid), claimed_until=bindparam("until", type_=Instant))
        .returning(*message_rows.as_text(holds))
    )


def _picked() -> CTE:
    """Return the jobs to claim, locked."""
    rooms = batch_of(_ROOM, called="rooms")
    nothing, lease = _waiting_for_nothing(rooms), _waiting_for_a_lease(rooms)
    either = union_all(select(nothing), select(lease)).subquery("either")
    turn = func.row_number().over(partition_by=either.c.lane, order_by=[either.c[one.name] for one in _AGE])
    ranked = select(either.c.job, either.c.lane, turn.label("turn")).subquery("ranked")
    return (
        select(ranked.c.job)
        .join_from(ranked, rooms, and_(ranked.c.lane == rooms.c.lane, ranked.c.turn <= rooms.c.room))
        .cte("picked")
    )


def _ready(rows: FromClause) -> ColumnElement[bool]:
    # Not OR IS NULL: before the first ANALYZE after a burst a planner takes that for hardly any row, and sorts all of
    # them: 250 ms a claim of 40,000 held jobs, and 7 ms in the index's order.
    now = bindparam("now", type_=Instant)
    claimed_until = func.coalesce(rows.c.claimed_until, literal_column("'-infinity'::timestamptz"))
    return and_(rows.c.not_before <= now, claimed_until <= now)


def _oldest_of_each(rooms: FromClause, condition: ColumnElement[bool], *, called: str) -> CTE:
    # Lane by lane from the index, and no further than there is room: a million held jobs are not looked at.
    oldest = (
        select(holds.c.lane, *_AGE)
        .where(holds.c.lane == rooms.c.lane, condition)
        .order_by(*_AGE)
        .limit(rooms.c.room)
        .with_for_update(of=holds, skip_locked=True)
        .correlate(rooms)
        .lateral("oldest")
    )
    return select(oldest).select_from(rooms).join(oldest, true()).cte(called)


def _waiting_for_nothing(rooms: FromClause) -> CTE:
    # No lease has an empty name; IS NULL would be taken for hardly any row, as above.
    nothing = func.coalesce(holds.c.waits_for, "") <= ""
    return _oldest_of_each(rooms, and_(nothing, _ready(holds)), called="waiting_for_nothing")


def _waiting_for_a_lease(rooms: FromClause) -> CTE:
    # One for each lease, the oldest of all lanes: its next waiter would find it taken, and come back. Asked of each
    # waiter on the way, oldest first; as a join it would be asked of all of them.
    at, other = moment(), holds.alias("other")
    older = (
        select(literal(1))
        .select_from(other)
        .where(
            other.c.waits_for == holds.c.waits_for,
            other.c.lane == bindparam("lanes", type_=ARRAY(Text)).any_(),
            tuple_(*(other.c[one.name] for one in _AGE)) < tuple_(*_AGE),
            _ready(other),
        )
        .limit(1)
        .correlate(holds)
        .scalar_subquery()
    )
    taken = (
        select(literal(1))
        .select_from(leases.join(at, true()))
        .where(leases.c.name == holds.c.waits_for, live(at))
        .limit(1)
        .correlate(holds)
        .scalar_subquery()
    )
    free, first = func.coalesce(taken, 0) <= 0, func.coalesce(older, 0) <= 0
    condition = and_(holds.c.waits_for.is_not(None), _ready(holds), free, first)
    return _oldest_of_each(rooms, condition, called="waiting_for_a_lease")


def _row(one: Held) -> tuple[Any, ...]:
    values = {
        **{
            name: getattr(one, name)
            for name in ("job", "lane", "tries", "not_before", "waits_for", "start_by", "held_at")
        },
        **message_rows.written(one.message),
        "task": one.message.task,
        "reason": kept_messages.legible(one.reason),
    }
    return tuple(values.get(column.name) for column in _STORED)


def _read(row: Any) -> Held:
    message = message_rows.read(row)
    assert message is not None  # noqa: S101 - the columns are NOT NULL
    return Held(
        message=message,
        lane=row.lane,
        tries=row.tries,
        not_before=row.not_before.astimezone(UTC),
        waits_for=row.waits_for,
        start_by=None if row.start_by is None else row.start_by.astimezone(UTC),
        reason=row.reason,
        held_at=row.held_at.astimezone(UTC),
    )

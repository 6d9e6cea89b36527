"""How runs end in PostgreSQL: their rows, their keys, and their leases, which are freed by deleting them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import errors
from sqlalchemy import (
    CTE,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Delete,
    FromClause,
    Integer,
    Text,
    Update,
    and_,
    case,
    delete,
    literal,
    or_,
    select,
    text,
    true,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.dml import ReturningDelete

from slackwater.adapters.postgres import under_way
from slackwater.adapters.postgres.batches import unnested
from slackwater.adapters.postgres.database import Database
from slackwater.adapters.postgres.pipeline import Pipeline, Statement, arrays, batch_of
from slackwater.adapters.postgres.pulse import clock, durably, live, moment
from slackwater.adapters.postgres.run_rows import names
from slackwater.adapters.postgres.tables import Instant, keys, leases, runs
from slackwater.adapters.rounds import rounds
from slackwater.core.admissions import key_state
from slackwater.core.job import JobState
from slackwater.ports.delivery import Finish

_OPEN = sorted(state.value for state in JobState if not state.final)
_ENDED = sorted(state.value for state in JobState if state.final)
_WAITING = [JobState.HELD.value, JobState.QUEUED.value]
_JOB, _TRIES = Column("job", Text), Column("tries", Integer)
_FINISH: list[Column[Any]] = [
    _JOB,
    _TRIES,
    Column("state", Text),
    Column("key", Text),
    Column("key_state", Text),
    Column("lease", Text),
    Column("fence", BigInteger),
    Column("digest", Text),
    Column("ended_at", Instant),
    Column("handed_back", Boolean),
]
_HELD: list[Column[Any]] = [leases.c.name, leases.c.fence]
_WAIT_FOR_LOCK = text("SET LOCAL lock_timeout = '1s'")


class Finishing:
    """The statements that record how bodies ended, for one schema."""

    def __init__(self, schema: str) -> None:
        batch, held = batch_of(_FINISH), batch_of(_HELD, called="held")
        ours = tuple_(leases.c.name, leases.c.fence).in_(select(held.c.name, held.c.fence))
        self._end_runs = Statement.of(_ended_runs(batch), schema=schema)
        self._end_keys = Statement.of(_ended_keys(batch), schema=schema)
        self._free = Statement.of(freed(ours), schema=schema)

    def finish(self, pipeline: Pipeline, finishes: Sequence[Finish]) -> Delete | None:
        """Record how bodies ended, and free their leases.

        Returns:
            What frees the leases that were locked; None where none was.
        """
        for part in rounds(finishes, by=lambda one: one.job):
            values = arrays(_FINISH, [_finish_row(one) for one in part])
            pipeline.send(self._end_runs, **values)
            if any(one.key is not None for one in part):
                pipeline.send(self._end_keys, **values)
        held = [(one.lease, one.fence) for one in finishes if one.lease is not None and one.fence is not None]
        if not held:
            return None
        freed_names = {row.name for row in pipeline.send(self._free, **arrays(_HELD, held, called="held"))}
        left = [each for each in held if each[0] not in freed_names]
        return delete(leases).where(_fenced(left)) if left else None


def _finish_row(one: Finish) -> tuple[Any, ...]:
    ended_at = one.ended_at if one.state.final else None
    state = key_state(one.state).value
    told = (one.job, one.tries, one.state.value, one.key, state)
    return (*told, one.lease, one.fence, one.digest, ended_at, one.handed_back)


def _ended_runs(batch: FromClause) -> Insert:
    one = batch.c
    rows = (
        select(one.job, one.tries, literal(1), one.handed_back, one.state, clock())
        .where(durably(), ~_replaced(batch))
        .order_by(one.job)
    )
    columns = [runs.c.job, runs.c.tries, runs.c.attempts, runs.c.handed_back, runs.c.state, runs.c.changed_at]
    new = insert(runs).from_select(columns, rows)
    changed = {"tries": new.excluded.tries, "state": new.excluded.state, "changed_at": new.excluded.changed_at}
    back = or_(runs.c.handed_back, new.excluded.handed_back)
    holders = _holders(batch)
    held = runs.c.job.in_(select(holders.c.job))
    ends = and_(new.excluded.state == names(_ENDED).any_(), runs.c.state == names(_WAITING).any_())
    # Added: a table that is first named behind ON CONFLICT is named without its schema.
    return (
        new.add_cte(holders)
        .on_conflict_do_update(
            index_elements=["job"],
            set_=changed | {"attempts": _attempts(new.excluded.tries), "handed_back": back},
            where=and_(_is_open(runs.c.state), or_(runs.c.tries <= new.excluded.tries, and_(ends, held))),
        )
        .add_cte(under_way.forgotten(batch, unless=_replaced(batch)).cte("forgotten"))
    )


def _holders(batch: FromClause) -> CTE:
    """Return the jobs of the batch whose lease is still theirs, under their fence.

    Where a later try of such a job waits, it is a body that was fenced out and came again while this one worked.
    """
    theirs = and_(leases.c.name == batch.c.lease, leases.c.job == batch.c.job, leases.c.fence == batch.c.fence)
    return select(batch.c.job).join_from(batch, leases, theirs).cte("holders")


def _is_open(state: ColumnElement[str]) -> ColumnElement[bool]:
    # Not IN, whose text is made at each call.
    found: ColumnElement[bool] = state == names(_OPEN).any_()
    return found


def _attempts(tries: ColumnElement[int]) -> ColumnElement[int]:
    return case((runs.c.tries == tries, runs.c.attempts), else_=literal(1))


def _replaced(batch: FromClause) -> ColumnElement[bool]:
    """Return the condition that a later delivery of the same job has its lease by now."""
    later = and_(leases.c.name == batch.c.lease, leases.c.job == batch.c.job, leases.c.fence > batch.c.fence)
    return select(literal(1)).select_from(leases).where(later).exists()


def _ended_keys(batch: FromClause) -> Update:
    one = batch.c
    superseded = select(literal(1)).select_from(runs).where(runs.c.job == one.job, runs.c.tries > one.tries).exists()
    locked = (
        select(keys.c.name, one.key_state, one.digest, one.ended_at)
        .join_from(keys, batch, and_(keys.c.name == one.key, keys.c.job == one.job))
        .where(_is_open(keys.c.state), ~superseded, ~_replaced(batch))
        .order_by(one.key)
        .with_for_update(of=keys)
        .cte("locked")
    )
    new = locked.c
    values = {"state": new.key_state, "digest": new.digest, "ended_at": new.ended_at, "lease": None}
    return update(keys).where(keys.c.name == new.name).values(**values, changed_at=clock())


def hand_back(connection: Connection, jobs: Sequence[tuple[str, int]], *, boot: UUID | None) -> Delete:
    """Record that deliveries go back, and free their leases; return what frees those that were locked."""
    for part in rounds(jobs, by=lambda one: one[0]):
        batch = unnested([_JOB, _TRIES], part)
        connection.execute(_handed_back(batch, boot=boot))
    theirs = leases.c.job == names(job for job, _ in jobs).any_()
    condition = theirs if boot is None else and_(theirs, leases.c.boot == boot)
    connection.execute(freed(condition))
    return delete(leases).where(condition)


def _handed_back(batch: FromClause, *, boot: UUID | None) -> Insert:
    one = batch.c
    rows = select(one.job, one.tries, literal(1), true(), literal(JobState.QUEUED.value), clock()).order_by(one.job)
    if boot is not None:
        others = and_(leases.c.job == one.job, leases.c.boot != boot)
        rows = rows.where(~select(literal(1)).select_from(leases).where(others).exists())
    columns = [runs.c.job, runs.c.tries, runs.c.attempts, runs.c.handed_back, runs.c.state, runs.c.changed_at]
    new = insert(runs).from_select(columns, rows)
    changed = {name: new.excluded[name] for name in ("tries", "handed_back", "state", "changed_at")}
    return new.on_conflict_do_update(
        index_elements=["job"],
        set_=changed | {"attempts": _attempts(new.excluded.tries)},
        where=and_(_is_open(runs.c.state), runs.c.tries <= new.excluded.tries),
    )


def freed(*conditions: ColumnElement[bool]) -> ReturningDelete[Any]:
    """Return what deletes leases without waiting for those that a transaction has locked; it returns their names.

    The connection of a worker that is stopped, or dead on another machine, may keep a lock for minutes.
    """
    theirs = select(leases.c.name).where(*conditions).order_by(leases.c.name).with_for_update(skip_locked=True)
    return delete(leases).where(leases.c.name.in_(theirs)).returning(leases.c.name)


def free_later(database: Database, left: Delete | None) -> None:
    """Free leases that were locked a moment ago, most likely by their renewal; what stays locked lapses by itself."""
    if left is None:
        return

    def free(connection: Connection) -> None:
        connection.execute(_WAIT_FOR_LOCK)
        try:
            connection.execute(left)
        except DBAPIError as error:
            if not isinstance(error.orig, errors.LockNotAvailable):
                raise

    database.transact(free)


def outdated(before: datetime) -> list[Delete]:
    """Return what deletes ended runs, ended keys and lapsed leases that changed last before an instant.

    Locked rows are left out: they are about to change, and waiting for them in no order could be a circle.
    """
    at = moment()
    gone = [
        select(runs.c.job).where(runs.c.state.in_(_ENDED), runs.c.changed_at < before),
        select(keys.c.name).where(keys.c.state.in_(_ENDED), keys.c.changed_at < before),
        select(leases.c.name).join_from(leases, at, true()).where(leases.c.expires_at < before, ~live(at)),
    ]
    return [
        delete(one.table).where(one.in_(query.with_for_update(of=one.table, skip_locked=True)))
        for one, query in zip((runs.c.job, keys.c.name, leases.c.name), gone, strict=True)
    ]


def _fenced(held: Sequence[tuple[str, int]]) -> ColumnElement[bool]:
    batch = unnested(_HELD, held)
    return tuple_(leases.c.name, leases.c.fence).in_(select(batch.c.name, batch.c.fence))

"""What is kept of jobs under way in PostgreSQL, as parts of the statements that begin, end and take back runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    Delete,
    FromClause,
    and_,
    cast,
    delete,
    exists,
    literal_column,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import JSON, Insert, insert

from slackwater.adapters.postgres import message_rows
from slackwater.adapters.postgres.batches import unnested
from slackwater.adapters.postgres.pipeline import batch_of
from slackwater.adapters.postgres.pulse import clock, live, moment
from slackwater.adapters.postgres.tables import leases, runs
from slackwater.adapters.postgres.tables import under_way as table
from slackwater.core.job import JobState
from slackwater.core.under_way import Start, UnderWay
from slackwater.errors import ConfigurationError

COLUMNS = [*table.columns]
_RUNNING: ColumnElement[str] = literal_column(f"'{JobState.RUNNING.value}'")
_HELD: ColumnElement[str] = literal_column(f"'{JobState.HELD.value}'")
_START = [table.c.job, table.c.tries, table.c.attempt, table.c.lease]


def rows_of(jobs: Iterable[UnderWay]) -> list[tuple[Any, ...]]:
    """Return what is to be kept as rows, in the order of `COLUMNS`."""
    return [_row(one) for one in jobs]


def _row(one: UnderWay) -> tuple[Any, ...]:
    try:
        message = message_rows.written(one.message)
    except ConfigurationError:
        # A job is not refused for headers that cannot be kept: it is only not started again from here.
        message = message_rows.written(None)
    values = {**one.start._asdict(), "task": one.task, "lane": one.lane, "lease": one.lease, "key": one.key, **message}
    return tuple(values[column.name] for column in COLUMNS)


def kept(*, called: str) -> Insert:
    """Return what keeps a batch of jobs, for use as a part of a statement; their runs are locked."""
    batch = batch_of(COLUMNS, called=called)
    values = [cast(batch.c[one.name], JSON) if isinstance(one.type, JSON) else batch.c[one.name] for one in COLUMNS]
    new = insert(table).from_select([one.name for one in COLUMNS], select(*values))
    changed = {one.name: new.excluded[one.name] for one in COLUMNS if one.name != "job"}
    return new.on_conflict_do_update(index_elements=["job"], set_=changed)


def forgotten(batch: FromClause, unless: ColumnElement[bool]) -> Delete:
    """Return what forgets the jobs of a batch that have told an end, for use as a part of a statement."""
    return delete(table).where(table.c.job == batch.c.job, table.c.tries <= batch.c.tries, ~unless)


def orphaned() -> Delete:
    """Return what deletes what is kept of jobs without a run: pruned, as nobody asked for it for long."""
    return delete(table).where(~exists().where(runs.c.job == table.c.job))


def leaseless(connection: Connection, *, limit: int) -> list[Start]:
    """Return the starts under way whose lease has ended."""
    at = moment()
    query = (
        select(table.c.job, table.c.tries, table.c.attempt)
        .join_from(table, at, true())
        .join(runs, _runs_as(table))
        .outerjoin(leases, and_(leases.c.name == table.c.lease, leases.c.job == table.c.job))
        .where(leases.c.name.is_(None) | ~live(at))
        .order_by(table.c.job)
        .limit(limit)
    )
    return [Start(*found) for found in connection.execute(query)]


def read(connection: Connection, jobs: ColumnElement[Any]) -> dict[str, UnderWay]:
    """Return what is kept of jobs, given as an array."""
    found = connection.execute(select(*message_rows.as_text(table)).where(table.c.job == jobs.any_()))
    return {one.job: _under_way(one) for one in found}


def held_runs(lost: Mapping[Start, str]) -> CTE:
    """Return what writes runs down as held, for use as a part of a statement: those of these starts, by their lease.

    It gives the jobs whose runs were written.
    """
    batch = unnested(_START, [(*start, lease) for start, lease in lost.items()])
    at, one = moment(), batch.c
    again = exists().where(leases.c.name == one.lease, leases.c.job == one.job, live(at)).correlate(batch, at)
    mine = (
        select(runs.c.job)
        .join_from(runs, batch, _runs_as(batch))
        .join(at, true())
        .where(~again)
        .order_by(runs.c.job)
        .with_for_update(of=runs, skip_locked=True)
        .cte("mine")
    )
    held = update(runs).where(runs.c.job == mine.c.job).values(state=_HELD, changed_at=clock())
    return held.returning(runs.c.job).cte("held_runs")


def _runs_as(given: FromClause) -> ColumnElement[bool]:
    same = (runs.c.job == given.c.job, runs.c.tries == given.c.tries, runs.c.attempts == given.c.attempt)
    return and_(*same, runs.c.state == _RUNNING)


def _under_way(one: Any) -> UnderWay:
    return UnderWay(
        start=Start(one.job, one.tries, one.attempt),
        task=one.task,
        lane=one.lane,
        lease=one.lease,
        key=one.key,
        message=message_rows.read(one),
    )

"""What is kept of jobs under way in PostgreSQL; forgetting and taking back are parts of the statements on runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    Delete,
    FromClause,
    Uuid,
    and_,
    bindparam,
    cast,
    delete,
    exists,
    literal_column,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import JSON, insert
from sqlalchemy.sql.dml import ReturningInsert

from slackwater.adapters.postgres import message_rows
from slackwater.adapters.postgres.batches import unnested
from slackwater.adapters.postgres.pipeline import Pipeline, Statement, arrays, batch_of
from slackwater.adapters.postgres.pulse import clock, durably, live, moment
from slackwater.adapters.postgres.tables import leases, runs
from slackwater.adapters.postgres.tables import under_way as table
from slackwater.core.job import JobState
from slackwater.core.under_way import Offer, Start, UnderWay
from slackwater.errors import ConfigurationError

_RUNNING: ColumnElement[str] = literal_column(f"'{JobState.RUNNING.value}'")
_HELD: ColumnElement[str] = literal_column(f"'{JobState.HELD.value}'")
_KEPT = [*table.columns]
_OFFER = [one for one in _KEPT if one.name != "attempt"]
_START = [table.c.job, table.c.tries, table.c.attempt, table.c.lease]


class Keeping:
    """The statement that keeps jobs, for one schema."""

    def __init__(self, schema: str) -> None:
        self._keep = Statement.of(_kept(), schema=schema)

    def keep(self, pipeline: Pipeline, boot: UUID, offers: Iterable[Offer]) -> frozenset[Start]:
        """Keep those jobs of a worker that run under their lease; return their starts."""
        sent = pipeline.send(self._keep, boot=boot, **arrays(_OFFER, [_row(one) for one in offers]))
        return frozenset(Start(*one) for one in sent)


def _kept() -> ReturningInsert[Any]:
    batch = batch_of(_OFFER)
    held = and_(leases.c.name == batch.c.lease, leases.c.job == batch.c.job)
    # Locked first, as those lock them who end them. One that changes at this moment is left out.
    running = (
        select(runs.c.attempts.label("attempt"), *[batch.c[one.name] for one in _OFFER])
        .join_from(batch, runs, and_(runs.c.job == batch.c.job, runs.c.tries == batch.c.tries))
        .join(leases, held)
        .where(runs.c.state == _RUNNING, leases.c.boot == bindparam("boot", type_=Uuid), durably())
        .order_by(batch.c.job)
        .with_for_update(of=runs, skip_locked=True)
        .cte("running")
    )
    # Of a job that the worker has twice, of one try, the messages are copies.
    values = [cast(running.c[one.name], JSON) if isinstance(one.type, JSON) else running.c[one.name] for one in _KEPT]
    once = select(*values).distinct(running.c.job).order_by(running.c.job)
    new = insert(table).from_select([one.name for one in _KEPT], once)
    changed = {one.name: new.excluded[one.name] for one in _KEPT if one.name != "job"}
    return new.on_conflict_do_update(index_elements=["job"], set_=changed).returning(
        table.c.job, table.c.tries, table.c.attempt
    )


def _row(one: Offer) -> tuple[Any, ...]:
    try:
        message = message_rows.written(one.message)
    except ConfigurationError:
        # A job is not refused for headers that cannot be kept: it is only not started again from here.
        message = message_rows.written(None)
    values = {"job": one.job, "tries": one.tries, "task": one.task, "lane": one.lane, "lease": one.lease}
    values |= {"key": one.key, **message}
    return tuple(values[column.name] for column in _OFFER)


def forgotten(batch: FromClause, unless: ColumnElement[bool]) -> Delete:
    """Return what forgets the jobs of a batch that have told an end, for use as a part of a statement."""
    return delete(table).where(table.c.job == batch.c.job, table.c.tries <= batch.c.tries, ~unless)


def orphaned() -> Delete:
    """Return what deletes what is kept of jobs that are not under way any more.

    An end that is told at the moment of keeping does not see what is kept, and leaves it; so do jobs that ended in the
    hands of another worker. Locked rows are left out: they are about to change.
    """
    gone = select(table.c.job).where(~exists().where(_runs_as(table)))
    return delete(table).where(table.c.job.in_(gone.with_for_update(skip_locked=True)))


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
    """Return what is kept of jobs, given as an array, that are under way."""
    query = select(*message_rows.as_text(table)).join_from(table, runs, _runs_as(table))
    found = connection.execute(query.where(table.c.job == jobs.any_()))
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

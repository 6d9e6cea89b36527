"""Rows of runs, keys and leases: locked and read for a decision, and written after it.

Every transaction locks runs, then keys, each in the order of their names, so that no two wait for each other in a
circle. A row that is not there is made, in order to be locked. Leases are never waited for: a transaction that checks
a fence may stay open for as long as its caller likes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, Text, delete, func, literal, select, true, update
from sqlalchemy.dialects.postgresql import ARRAY, insert

from slackwater.adapters.postgres.batches import chosen, unnested
from slackwater.adapters.postgres.pulse import beat, clock, live, moment
from slackwater.adapters.postgres.tables import fences, keys, leases, runs
from slackwater.core.admission import Key, Lease, Run
from slackwater.core.admissions import TakenLease
from slackwater.core.job import JobState

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_NOBODY = UUID(int=0)
_NEVER = timedelta(seconds=-1)  # not even amnesty makes it live


def names(values: Iterable[str]) -> Any:
    """Return names as one parameter, to compare with `any_()`."""
    return literal(list(values), ARRAY(Text))


def run_of(row: Row[Any]) -> Run:
    """Return a run's row as a value."""
    return Run(
        job=row.job,
        tries=row.tries,
        attempts=row.attempts,
        handed_back=row.handed_back,
        state=JobState(row.state),
    )


def key_of(row: Row[Any]) -> Key:
    """Return a key's row as a value."""
    return Key(
        name=row.name,
        job=row.job,
        state=JobState(row.state),
        digest=row.digest,
        lease=row.lease,
        announced_at=row.announced_at,
        ended_at=row.ended_at,
    )


def lock_runs(connection: Connection, jobs: Iterable[str]) -> dict[str, Run]:
    """Lock the runs of these jobs, and return those that there are; for the others empty rows are made."""
    columns = [runs.c.job, runs.c.tries, runs.c.attempts, runs.c.handed_back, runs.c.state, runs.c.changed_at]
    rows = [(job, 0, 0, False, JobState.QUEUED.value, _LONG_AGO) for job in sorted(set(jobs))]
    new = insert(runs).from_select(columns, chosen(columns, rows))
    # Not DO NOTHING, which neither locks nor returns what is there.
    statement = new.on_conflict_do_update(index_elements=["job"], set_={"changed_at": runs.c.changed_at}).returning(
        runs
    )
    return {row.job: run_of(row) for row in connection.execute(statement) if row.changed_at != _LONG_AGO}


def lock_keys(connection: Connection, wanted: Iterable[str]) -> dict[str, Key]:
    """Lock these keys, and return those that there are; for the others empty rows are made."""
    columns = [keys.c.name, keys.c.job, keys.c.state, keys.c.changed_at]
    rows = [(name, "", JobState.QUEUED.value, _LONG_AGO) for name in sorted(set(wanted))]
    new = insert(keys).from_select(columns, chosen(columns, rows))
    statement = new.on_conflict_do_update(index_elements=["name"], set_={"changed_at": keys.c.changed_at}).returning(
        keys
    )
    return {row.name: key_of(row) for row in connection.execute(statement) if row.job} if rows else {}


def make_leases(connection: Connection, wanted: Iterable[str]) -> frozenset[str]:
    """Make rows for leases that have none, lapsed and of nobody; return which.

    DO NOTHING waits for a transaction that makes the same row, and that one is another admission, but not for one
    that has locked a row which is there.
    """
    columns = [leases.c.name, leases.c.job, leases.c.boot, leases.c.fence, leases.c.expires_at, leases.c.lives_for]
    rows = [(name, "", _NOBODY, 0, _LONG_AGO, _NEVER) for name in sorted(set(wanted))]
    statement = (
        insert(leases).from_select(columns, chosen(columns, rows)).on_conflict_do_nothing().returning(leases.c.name)
    )
    return frozenset(connection.execute(statement).scalars()) if rows else frozenset()


def lock_leases(
    connection: Connection, wanted: Iterable[str], *, replacing: Iterable[str] = ()
) -> tuple[dict[str, Lease], frozenset[str]]:
    """Lock those leases that may be taken: lapsed ones, and those to be replaced.

    Returns:
        What is known of them all, and the names of those that could not be locked, or were taken at this moment.
    """
    asked = frozenset(wanted)
    if not asked:
        return {}, frozenset()
    at = moment()
    took = (
        select(leases, live(at).label("live"))
        .join_from(leases, at, true())
        .where(leases.c.name == names(sorted(asked)).any_(), ~live(at) | (leases.c.name == names(replacing).any_()))
        .order_by(leases.c.name)
        .with_for_update(of=leases, skip_locked=True)
        .cte("took")
    )
    seen = [func.coalesce(took.c[name], leases.c[name]).label(name) for name in ("job", "boot", "fence")]
    query = (
        select(leases.c.name, *seen, func.coalesce(took.c.live, live(at)).label("live"), took.c.name.label("locked"))
        .select_from(leases.join(at, true()).outerjoin(took, took.c.name == leases.c.name))
        .where(leases.c.name == names(sorted(asked)).any_())
        .add_cte(beat(None).cte("beat"))
    )
    rows = connection.execute(query).all()
    known = {row.name: _lease(row) for row in rows if row.job}
    ours = {row.name for row in rows if row.locked is not None}
    return known, frozenset(
        name for name in asked - ours if name not in known or not known[name].live or name in replacing
    )


def _lease(row: Any) -> Lease:
    return Lease(name=row.name, job=row.job, boot=row.boot, fence=row.fence, live=row.live)


def read_leases(connection: Connection, wanted: Iterable[str]) -> dict[str, Lease]:
    """Return what is known of leases, without a lock."""
    at = moment()
    query = (
        select(leases, live(at).label("live"))
        .join_from(leases, at, true())
        .where(leases.c.name == names(wanted).any_())
    )
    return {row.name: _lease(row) for row in connection.execute(query)}


def next_fences(connection: Connection, count: int) -> list[int]:
    """Return fencing tokens, rising; drawn only once the leases are locked, so that each taking gets a higher one."""
    if not count:
        return []
    series = func.generate_series(1, count).table_valued("number")
    return sorted(connection.execute(select(fences.next_value()).select_from(series)).scalars())


def write_runs(connection: Connection, changed: Mapping[str, Run]) -> None:
    """Write runs whose rows are locked."""
    columns = [runs.c.job, runs.c.tries, runs.c.attempts, runs.c.handed_back, runs.c.state]
    rows = [(one.job, one.tries, one.attempts, one.handed_back, one.state.value) for one in changed.values()]
    batch = unnested(columns, rows)
    values = {one.name: batch.c[one.name] for one in columns[1:]}
    if rows:
        connection.execute(update(runs).where(runs.c.job == batch.c.job).values(**values, changed_at=clock()))


def write_keys(connection: Connection, changed: Mapping[str, Key]) -> None:
    """Write keys whose rows are locked."""
    columns = [one for one in keys.columns if one.name != "changed_at"]
    rows = [
        (one.name, one.job, one.state.value, one.digest, one.lease, one.announced_at, one.ended_at)
        for one in changed.values()
    ]
    batch = unnested(columns, rows)
    values = {one.name: batch.c[one.name] for one in columns[1:]}
    if rows:
        connection.execute(update(keys).where(keys.c.name == batch.c.name).values(**values, changed_at=clock()))


def write_leases(connection: Connection, taken: Mapping[str, TakenLease]) -> None:
    """Write leases whose rows are locked; each lives from now on."""
    columns = [leases.c.name, leases.c.job, leases.c.boot, leases.c.fence, leases.c.lives_for]
    rows = [(name, one.lease.job, one.lease.boot, one.lease.fence, one.lives_for) for name, one in taken.items()]
    batch = unnested(columns, rows)
    values = {one.name: batch.c[one.name] for one in columns[1:]}
    ends = clock() + batch.c.lives_for
    if rows:
        connection.execute(update(leases).where(leases.c.name == batch.c.name).values(**values, expires_at=ends))


def remove_empty(connection: Connection, *, jobs: Iterable[str], key_names: Iterable[str]) -> None:
    """Remove rows that were made in order to be locked, and are not needed."""
    for column_, unused in ((runs.c.job, list(jobs)), (keys.c.name, list(key_names))):
        if unused:
            connection.execute(delete(column_.table).where(column_ == names(unused).any_()))


def remove_leases(connection: Connection, unwanted: Iterable[str]) -> None:
    """Remove leases whose rows are locked."""
    if gone := list(unwanted):
        connection.execute(delete(leases).where(leases.c.name == names(gone).any_()))

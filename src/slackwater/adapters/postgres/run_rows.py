"""Rows of runs, keys and leases: locked and read for a decision, and written after it.

Every transaction locks runs, then keys, each in the order of their names, so that no two wait for each other in a
circle. A row that is not there is made, in order to be locked. Leases are never waited for: a transaction that checks
a fence may stay open for as long as its caller likes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

from sqlalchemy import (
    Column,
    Connection,
    Executable,
    Integer,
    Select,
    Table,
    Text,
    Update,
    bindparam,
    cast,
    delete,
    func,
    literal,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.sql.dml import ReturningInsert

from slackwater.adapters.postgres.pipeline import Pipeline, Statement, arrays, batch_of, chosen_of
from slackwater.adapters.postgres.pulse import beat, clock, durably, live, moment
from slackwater.adapters.postgres.tables import fences, keys, leases, runs
from slackwater.core.admission import Key, Lease, Run
from slackwater.core.admissions import TakenLease
from slackwater.core.job import JobState

T = TypeVar("T")
Answer: TypeAlias = Callable[[], T]
"""Waits for the answer to what was sent, and returns it."""

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_NOBODY = UUID(int=0)
_NEVER = timedelta(seconds=-1)  # not even amnesty makes it live

_NEW_RUN = [runs.c.job, runs.c.tries, runs.c.attempts, runs.c.handed_back, runs.c.state, runs.c.changed_at]
_NEW_KEY = [keys.c.name, keys.c.job, keys.c.state, keys.c.changed_at]
_NEW_LEASE = [leases.c.name, leases.c.job, leases.c.boot, leases.c.fence, leases.c.expires_at, leases.c.lives_for]
_RUN = [runs.c.job, runs.c.tries, runs.c.attempts, runs.c.handed_back, runs.c.state]
_KEY = [one for one in keys.columns if one.name != "changed_at"]
_LEASE = [leases.c.name, leases.c.job, leases.c.boot, leases.c.fence, leases.c.lives_for]


def names(values: Iterable[str]) -> Any:
    """Return names as one parameter, to compare with `any_()`."""
    return literal(list(values), ARRAY(Text))


def _names(parameter: str) -> Any:
    return bindparam(parameter, type_=ARRAY(Text))


def run_of(row: Any) -> Run:
    """Return a run's row as a value."""
    return Run(
        job=row.job,
        tries=row.tries,
        attempts=row.attempts,
        handed_back=row.handed_back,
        state=JobState(row.state),
    )


def key_of(row: Any) -> Key:
    """Return a key's row as a value."""
    return Key(
        name=row.name,
        job=row.job,
        state=JobState(row.state),
        digest=row.digest,
        lease=row.lease,
        announced_at=_in_utc(row.announced_at),
        ended_at=_in_utc(row.ended_at),
    )


def _in_utc(instant: datetime | None) -> datetime | None:
    return None if instant is None else instant.astimezone(UTC)


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


class RunRows:
    """The statements over these rows, for one schema."""

    def __init__(self, schema: str) -> None:
        def compiled(statement: Executable) -> Statement:
            return Statement.of(statement, schema=schema)

        self._lock_runs = compiled(_locked_runs())
        self._lock_keys = compiled(_locked_keys())
        self._make_leases = compiled(_made_leases())
        self._lock_leases = compiled(_locked_leases())
        self._next_fences = compiled(_next_fences())
        self._write = compiled(_written())
        self._remove = {
            column.table.name: compiled(delete(column.table).where(column == _names("unwanted").any_()))
            for column in (runs.c.job, keys.c.name, leases.c.name)
        }

    def lock_runs(self, pipeline: Pipeline, jobs: Iterable[str]) -> Answer[dict[str, Run]]:
        """Lock the runs of these jobs; answers those that there are. For the others empty rows are made."""
        rows = [(job, 0, 0, False, JobState.QUEUED.value, _LONG_AGO) for job in sorted(set(jobs))]
        sent = pipeline.send(self._lock_runs, **arrays(_NEW_RUN, rows))
        return lambda: {row.job: run_of(row) for row in sent if row.changed_at != _LONG_AGO}

    def lock_keys(self, pipeline: Pipeline, wanted: Iterable[str]) -> Answer[dict[str, Key]]:
        """Lock these keys; answers those that there are. For the others empty rows are made."""
        rows = [(name, "", JobState.QUEUED.value, _LONG_AGO) for name in sorted(set(wanted))]
        if not rows:
            return dict
        sent = pipeline.send(self._lock_keys, **arrays(_NEW_KEY, rows))
        return lambda: {row.name: key_of(row) for row in sent if row.job}

    def make_leases(self, pipeline: Pipeline, wanted: Iterable[str]) -> Answer[frozenset[str]]:
        """Make rows for leases that have none, lapsed and of nobody; answers which.

        DO NOTHING waits for a transaction that makes the same row, and that one is another admission, but not for one
        that has locked a row which is there.
        """
        rows = [(name, "", _NOBODY, 0, _LONG_AGO, _NEVER) for name in sorted(set(wanted))]
        if not rows:
            return frozenset
        sent = pipeline.send(self._make_leases, **arrays(_NEW_LEASE, rows))
        return lambda: frozenset(row.name for row in sent)

    def lock_leases(
        self, pipeline: Pipeline, wanted: Iterable[str], *, of_keys: Iterable[str], replacing: Iterable[str] = ()
    ) -> Answer[dict[str, FoundLease]]:
        """Lock those leases that may be taken: lapsed ones, and those to be replaced.

        Args:
            pipeline: Where.
            wanted: Leases.
            of_keys: Keys, locked already, under whose leases their jobs run.
            replacing: Those of the wanted that are taken from whoever holds them.
        """
        asked, of_keys, taken = sorted(set(wanted)), sorted(set(of_keys)), list(replacing)
        if not asked and not of_keys:
            return dict
        sent = pipeline.send(self._lock_leases, wanted=asked, of_keys=of_keys, replacing=taken)
        return lambda: {row.name: _found(row) for row in sent}

    def next_fences(self, pipeline: Pipeline, count: int) -> Answer[list[int]]:
        """Answer fencing tokens, rising; drawn once the leases are locked, so that each taking gets a higher one."""
        if not count:
            return list
        sent = pipeline.send(self._next_fences, count=count)
        return lambda: sorted(row[0] for row in sent)

    def write(
        self,
        pipeline: Pipeline,
        *,
        runs_: Mapping[str, Run],
        keys_: Mapping[str, Key],
        taken: Mapping[str, TakenLease],
    ) -> None:
        """Write runs, keys and leases whose rows are locked; each lease lives from now on."""
        if not runs_ and not keys_ and not taken:
            return
        run_rows = [(one.job, one.tries, one.attempts, one.handed_back, one.state.value) for one in runs_.values()]
        key_rows = [
            (one.name, one.job, one.state.value, one.digest, one.lease, one.announced_at, one.ended_at)
            for one in keys_.values()
        ]
        lease_rows = [
            (name, one.lease.job, one.lease.boot, one.lease.fence, one.lives_for) for name, one in taken.items()
        ]
        pipeline.send(
            self._write,
            **arrays(_RUN, run_rows, called="run"),
            **arrays(_KEY, key_rows, called="key"),
            **arrays(_LEASE, lease_rows, called="lease"),
        )

    def remove_empty(self, pipeline: Pipeline, *, jobs: Iterable[str], key_names: Iterable[str]) -> None:
        """Remove rows that were made in order to be locked, and are not needed."""
        self._remove_rows(pipeline, runs, jobs)
        self._remove_rows(pipeline, keys, key_names)

    def remove_leases(self, pipeline: Pipeline, unwanted: Iterable[str]) -> None:
        """Remove leases whose rows are locked."""
        self._remove_rows(pipeline, leases, unwanted)

    def _remove_rows(self, pipeline: Pipeline, table: Table, unwanted: Iterable[str]) -> None:
        if gone := list(unwanted):
            pipeline.send(self._remove[table.name], unwanted=gone)


@dataclass(frozen=True, kw_only=True)
class FoundLease:
    """What is known of a lease's row.

    Attributes:
        lease: Its holder; None for a row of nobody.
        locked: It may be taken, and is locked for that.
    """

    lease: Lease | None
    locked: bool


def _found(row: Any) -> FoundLease:
    return FoundLease(lease=_lease(row) if row.job else None, locked=row.locked is not None)


def sorted_out(
    found: Mapping[str, FoundLease], asked: Iterable[str], *, replacing: Collection[str] = ()
) -> tuple[dict[str, Lease], frozenset[str]]:
    """Return what is known of leases, and the names of those that could not be locked, or were taken at this moment."""
    known = {name: one.lease for name, one in found.items() if one.lease is not None}
    not_ours = {name for name in asked if name not in found or not found[name].locked}
    return known, frozenset(name for name in not_ours if name not in known or not known[name].live or name in replacing)


def _locked_runs() -> ReturningInsert[Any]:
    new = insert(runs).from_select([one.name for one in _NEW_RUN], chosen_of(_NEW_RUN).where(durably()))
    # Not DO NOTHING, which neither locks nor returns what is there.
    return new.on_conflict_do_update(index_elements=["job"], set_={"changed_at": runs.c.changed_at}).returning(runs)


def _locked_keys() -> ReturningInsert[Any]:
    new = insert(keys).from_select([one.name for one in _NEW_KEY], chosen_of(_NEW_KEY).where(durably()))
    return new.on_conflict_do_update(index_elements=["name"], set_={"changed_at": keys.c.changed_at}).returning(keys)


def _made_leases() -> ReturningInsert[Any]:
    new = insert(leases).from_select([one.name for one in _NEW_LEASE], chosen_of(_NEW_LEASE))
    return new.on_conflict_do_nothing().returning(leases.c.name)


def _locked_leases() -> Select[Any]:
    at = moment()
    of_keys = select(func.array_agg(keys.c.lease)).where(keys.c.name == _names("of_keys").any_())
    # Cast, or ANY would compare a name with each row of the query, which are lists.
    held = cast(of_keys.scalar_subquery(), ARRAY(Text))
    asked = or_(leases.c.name == _names("wanted").any_(), leases.c.name == held.any_())
    took = (
        select(leases, live(at).label("live"))
        .join_from(leases, at, true())
        .where(asked, ~live(at) | (leases.c.name == _names("replacing").any_()))
        .order_by(leases.c.name)
        .with_for_update(of=leases, skip_locked=True)
        .cte("took")
    )
    seen = [func.coalesce(took.c[name], leases.c[name]).label(name) for name in ("job", "boot", "fence")]
    return (
        select(leases.c.name, *seen, func.coalesce(took.c.live, live(at)).label("live"), took.c.name.label("locked"))
        .select_from(leases.join(at, true()).outerjoin(took, took.c.name == leases.c.name))
        .where(asked)
        .add_cte(beat(None).cte("beat"))
    )


def _next_fences() -> Select[Any]:
    series = func.generate_series(1, bindparam("count", type_=Integer)).table_valued("number")
    return select(fences.next_value()).select_from(series)


def _written() -> Update:
    """Return one statement for all tables: what it writes is locked, so the order does not matter."""
    lease = batch_of(_LEASE, called="lease")
    values = {one.name: lease.c[one.name] for one in _LEASE[1:]}
    write_leases = update(leases).where(leases.c.name == lease.c.name)
    return (
        write_leases.values(**values, expires_at=clock() + lease.c.lives_for, taken_at=clock())
        .add_cte(_rewritten(_RUN, called="run").cte("written_runs"))
        .add_cte(_rewritten(_KEY, called="key").cte("written_keys"))
    )


def _rewritten(columns: Sequence[Column[Any]], *, called: str) -> Update:
    named, batch = columns[0], batch_of(columns, called=called)
    values = {one.name: batch.c[one.name] for one in columns[1:]}
    return update(named.table).where(named == batch.c[named.name]).values(**values, changed_at=clock())

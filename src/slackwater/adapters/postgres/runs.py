"""Runs, keys and leases in PostgreSQL: who may start, who has which key, who holds which lease."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Interval, literal, select, update

from slackwater.adapters.postgres import fencing, run_endings, run_rows, under_way
from slackwater.adapters.postgres.database import Database
from slackwater.adapters.postgres.pipeline import Pipeline
from slackwater.adapters.postgres.pulse import beat, clock, quickly
from slackwater.adapters.postgres.run_rows import RunRows, sorted_out
from slackwater.adapters.postgres.tables import keys, leases, runs
from slackwater.core.admission import Ask, Key, Lease, LeaseRule, Run, WhenTaken
from slackwater.core.admissions import Known, admit_each, announce_each
from slackwater.core.under_way import Offer, Start, UnderWay
from slackwater.ports.delivery import Announcement, Begun, Finish


class PostgresRuns:
    """The run store. An admission is one transaction of few statements, whatever the number of deliveries."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows = run_rows.RunRows(database.schema)
        self._finishing = run_endings.Finishing(database.schema)
        self._keeping = under_way.Keeping(database.schema)

    def begin(self, asks: Sequence[Ask]) -> Sequence[Begun]:
        """Decide for each delivery with `core.admission.admit`, and write what was decided.

        Raises:
            StoreUnavailable: The database does not answer; where that was at the commit, it may have been written.
        """
        if not asks:
            return []
        # In a pipeline of two waits: for what is known, and for the commit.
        return self._database.pipe(lambda pipeline: _begin(self._rows, pipeline, asks), repeatable=False)

    def finish(self, finishes: Sequence[Finish]) -> None:
        """Record how bodies ended, and free their leases."""
        if not finishes:
            return
        left = self._database.pipe(lambda pipeline: self._finishing.finish(pipeline, finishes), repeatable=True)
        run_endings.free_later(self._database, left)

    def announce(self, announcements: Sequence[Announcement], *, at: datetime, stale_before: datetime) -> Sequence[str]:
        """Claim keys at dispatch; return for each the job that has the key now."""
        if not announcements:
            return []
        return self._database.pipe(
            lambda pipeline: _announce(self._rows, pipeline, announcements, at=at, stale_before=stale_before),
            repeatable=False,
        )

    def hand_back(self, jobs: Sequence[tuple[str, int]], *, boot: UUID | None = None) -> None:
        """Record that deliveries go back to their queues, and free their leases."""
        if jobs:
            left = self._database.transact(lambda connection: run_endings.hand_back(connection, jobs, boot=boot))
            run_endings.free_later(self._database, left)

    def renew(self, boot: UUID, jobs: Sequence[str], *, lives_for: timedelta) -> None:
        """Renew the leases of a worker's bodies, in one statement; without any, be noted alive."""
        span = literal(lives_for, Interval)
        mine = (
            select(leases.c.name)
            .where(leases.c.boot == boot, leases.c.job == run_rows.names(jobs).any_())
            .order_by(leases.c.name)
            .with_for_update(skip_locked=True)
            .cte("mine")
        )
        statement = (
            update(leases)
            .where(leases.c.name == mine.c.name, quickly())
            .values(expires_at=clock() + span, lives_for=span)
            .add_cte(beat(lives_for).cte("beat"))
        )
        self._database.run(lambda connection: connection.execute(statement))

    def lapse(self, boot: UUID, jobs: Sequence[str], *, lost_for: timedelta = timedelta(0)) -> None:
        """End the leases of a worker's bodies that have died; one whose fence is being checked ends by itself."""
        if jobs:
            taken_before = leases.c.taken_at <= clock() - literal(lost_for, Interval)
            theirs = leases.c.job == run_rows.names(jobs).any_()
            statement = run_endings.freed(leases.c.boot == boot, theirs, taken_before)
            self._database.run(lambda connection: connection.execute(statement))

    def lapse_all(self, boot: UUID) -> None:
        """End all leases of a worker process that is dead; one whose fence is being checked ends by itself."""
        statement = run_endings.freed(leases.c.boot == boot)
        self._database.run(lambda connection: connection.execute(statement))

    def keep(self, boot: UUID, offers: Sequence[Offer]) -> frozenset[Start]:
        """Keep jobs whose bodies run under a lease, in one statement; return the starts that are kept from now on."""
        if not offers:
            return frozenset()
        return self._database.pipe(lambda pipeline: self._keeping.keep(pipeline, boot, offers), repeatable=True)

    def check_fence(self, connection: Any, *, lease: str, fence: int) -> None:
        """Make sure, inside a caller's own transaction, that a lease is still held under a fence.

        Raises:
            StaleFence: It is not.
            ConfigurationError: The connection is in no transaction, or to another database.
        """
        fencing.check_fence(connection, schema=self._database.schema, lease=lease, fence=fence)

    def runs(self, jobs: Iterable[str]) -> Mapping[str, Run]:
        """Return the runs of those jobs that have one."""
        query = select(runs).where(runs.c.job == run_rows.names(jobs).any_())
        rows = self._database.run(lambda connection: connection.execute(query).all())
        return {row.job: run_rows.run_of(row) for row in rows}

    def leaseless(self, *, limit: int) -> Sequence[Start]:
        """Return the starts under way whose lease has ended, by job."""
        return self._database.run(lambda connection: under_way.leaseless(connection, limit=limit))

    def under_way(self, jobs: Iterable[str]) -> Mapping[str, UnderWay]:
        """Return what is kept of jobs that are under way."""
        return self._database.run(lambda connection: under_way.read(connection, run_rows.names(jobs)))

    def key(self, name: str) -> Key | None:
        """Return what is known of a key."""
        query = select(keys).where(keys.c.name == name)
        row = self._database.run(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else run_rows.key_of(row)

    def lease(self, name: str) -> Lease | None:
        """Return who holds a lease; None where it is free."""
        found = self._database.run(lambda connection: run_rows.read_leases(connection, [name])).get(name)
        return found if found is not None and found.live else None

    def now(self) -> datetime:
        """Return the database's clock, in UTC."""
        return self._database.run(lambda connection: connection.execute(select(clock())).scalar_one())

    def prune(self, *, before: datetime) -> int:
        """Delete ended runs, ended keys and lapsed leases that changed last before an instant; return how many."""
        count = self._database.run(
            lambda connection: sum(connection.execute(one).rowcount for one in run_endings.outdated(before))
        )
        self._database.run(lambda connection: connection.execute(under_way.orphaned()))
        return count


def _begin(rows: RunRows, pipeline: Pipeline, asks: Sequence[Ask]) -> list[Begun]:
    leased = [ask.lease for ask in asks if ask.lease is not None]
    jobs, key_names = {ask.job for ask in asks}, {ask.key.name for ask in asks if ask.key is not None}
    known, made, fences = _locked(rows, pipeline, jobs=jobs, key_names=key_names, leased=leased)
    result = admit_each(asks, known, fences=fences)
    rows.write(pipeline, runs_=result.runs, keys_=result.keys, taken=result.leases)
    rows.remove_leases(pipeline, (made - result.leases.keys()) | result.ended)
    rows.remove_empty(
        pipeline,
        jobs=jobs - known.runs.keys() - result.runs.keys(),
        key_names=key_names - known.keys.keys() - result.keys.keys(),
    )
    return [Begun(admission=admission, fence=fence) for admission, fence in result.decided]


def _locked(
    rows: RunRows, pipeline: Pipeline, *, jobs: Collection[str], key_names: Collection[str], leased: list[LeaseRule]
) -> tuple[Known, frozenset[str], list[int]]:
    """Lock what a decision needs; return what is known, the leases that were made, and a fence for each one asked."""
    wanted = {rule.name for rule in leased}
    replacing = {rule.name for rule in leased if rule.when_taken is WhenTaken.REPLACE}
    # All is sent before the first answer is read.
    runs_sent, keys_sent = rows.lock_runs(pipeline, jobs), rows.lock_keys(pipeline, key_names)
    made_sent = rows.make_leases(pipeline, wanted)
    leases_sent = rows.lock_leases(pipeline, wanted, of_keys=key_names, replacing=replacing)
    fences_sent = rows.next_fences(pipeline, len(leased))
    known_runs, known_keys = runs_sent(), keys_sent()
    asked = wanted | {key.lease for key in known_keys.values() if key.lease is not None}
    made = made_sent()
    known_leases, locked = sorted_out(leases_sent(), asked, replacing=replacing)
    known = Known(runs=known_runs, keys=known_keys, leases=known_leases, locked=locked)
    return known, made, fences_sent()


def _announce(
    rows: RunRows,
    pipeline: Pipeline,
    announcements: Sequence[Announcement],
    *,
    at: datetime,
    stale_before: datetime,
) -> tuple[str, ...]:
    names = {one.key.name for one in announcements}
    keys_sent, leases_sent = rows.lock_keys(pipeline, names), rows.lock_leases(pipeline, (), of_keys=names)
    known_keys = keys_sent()
    holders = {key.lease for key in known_keys.values() if key.lease is not None}
    known_leases, locked = sorted_out(leases_sent(), holders)
    result = announce_each(
        [(one.job, one.key) for one in announcements],
        Known(keys=known_keys, leases=known_leases, locked=locked),
        at=at,
        stale_before=stale_before,
    )
    rows.write(pipeline, runs_={}, keys_=result.keys, taken={})
    rows.remove_leases(pipeline, result.ended)
    return result.jobs

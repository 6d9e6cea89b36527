"""Jobs of fan-outs, and the endings of jobs, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Text, literal, select, update
from sqlalchemy.dialects.postgresql import ARRAY, insert

from slackwater.adapters.postgres.batches import chosen, unnested
from slackwater.adapters.postgres.database import Database
from slackwater.adapters.postgres.tables import endings as ended
from slackwater.adapters.postgres.tables import fan_out_jobs
from slackwater.core.job import JobState
from slackwater.ports import Ending

_OPEN = sorted(state.value for state in JobState if not state.final)


class PostgresFanOuts:
    """The fan-out store; each act is one statement, whatever the number of jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, occurrence: UUID, jobs: Sequence[str]) -> None:
        """Record jobs as queued; those already recorded are left as they are."""
        table = fan_out_jobs.c
        columns = [table.job, table.occurrence, table.state]
        rows = chosen(columns, [(job, occurrence, JobState.QUEUED.value) for job in jobs])
        statement = insert(fan_out_jobs).from_select(columns, rows).on_conflict_do_nothing()
        if jobs:
            self._database.run(lambda connection: connection.execute(statement))

    def unsettled(self, occurrence: UUID, *, after: str, limit: int) -> Sequence[str]:
        """Return ids in no final state that sort after `after`, in order, at most `limit`."""
        table = fan_out_jobs.c
        query = (
            select(table.job)
            .where(table.occurrence == occurrence, table.job > after, table.state.in_(_OPEN))
            .order_by(table.job)
            .limit(limit)
        )
        return self._database.run(lambda connection: connection.execute(query).scalars().all())

    def settle(self, states: Mapping[str, JobState], *, at: datetime) -> None:
        """Record states; a final state is never changed."""
        table = fan_out_jobs.c
        batch = unnested([table.job, table.state], [(job, state.value) for job, state in states.items()])
        # Rows are locked in one order for all, or two settlers of the same jobs could wait for each other in a circle.
        locked = (
            select(table.job, batch.c.state)
            .join_from(fan_out_jobs, batch, table.job == batch.c.job)
            .where(table.state.in_(_OPEN))
            .order_by(table.job)
            .with_for_update(of=fan_out_jobs)
            .cte("locked")
        )
        statement = (
            update(fan_out_jobs)
            .where(table.job == locked.c.job, table.state.in_(_OPEN))
            .values(state=locked.c.state, settled_at=at)
        )
        if states:
            self._database.run(lambda connection: connection.execute(statement))


class PostgresEndings:
    """The ending store; each act is one statement."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, endings: Sequence[Ending]) -> None:
        """Record; the first ending of a job stays."""
        columns = [*ended.columns]
        rows = [(one.job, one.state.value, one.reason, one.task, one.lane, one.at) for one in endings]
        statement = insert(ended).from_select(columns, chosen(columns, rows)).on_conflict_do_nothing()
        if rows:
            self._database.run(lambda connection: connection.execute(statement))

    def find(self, jobs: Iterable[str]) -> Mapping[str, Ending]:
        """Return the endings of those jobs that have one."""
        wanted = list(jobs)
        query = select(ended).where(ended.c.job == literal(wanted, ARRAY(Text)).any_())
        rows = self._database.run(lambda connection: connection.execute(query).all()) if wanted else []
        return {
            row.job: Ending(
                job=row.job, state=JobState(row.state), reason=row.reason, task=row.task, lane=row.lane, at=row.at
            )
            for row in rows
        }

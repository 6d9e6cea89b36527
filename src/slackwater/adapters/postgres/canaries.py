"""Canaries of the lanes, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import case, func, select
from sqlalchemy.dialects.postgresql import insert

from slackwater.adapters.postgres.database import Database
from slackwater.adapters.postgres.tables import canaries as table
from slackwater.core.canary import Canary


class PostgresCanaries:
    """The canary store; each act is one statement."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def send(self, lane: str, *, at: datetime) -> None:
        """Record that one is sent; while an older one is not answered its instant stays."""
        new = insert(table).values(lane=lane, sent_at=at)
        answered = table.c.answered_at >= table.c.sent_at
        statement = new.on_conflict_do_update(
            index_elements=["lane"], set_={"sent_at": case((answered, new.excluded.sent_at), else_=table.c.sent_at)}
        )
        self._database.run(lambda connection: connection.execute(statement))

    def answer(self, lane: str, *, at: datetime, worker: str) -> None:
        """Record that a worker of the lane has run one; an older answer changes nothing."""
        new = insert(table).values(lane=lane, sent_at=at, answered_at=at, worker=worker)
        statement = new.on_conflict_do_update(
            index_elements=["lane"],
            set_={"answered_at": new.excluded.answered_at, "worker": new.excluded.worker},
            where=func.coalesce(table.c.answered_at < new.excluded.answered_at, True),
        )
        self._database.run(lambda connection: connection.execute(statement))

    def all(self) -> Sequence[Canary]:
        """Return each lane's, by lane."""
        query = select(table).order_by(table.c.lane)
        rows = self._database.run(lambda connection: connection.execute(query).all())
        return [Canary(**row._mapping) for row in rows]

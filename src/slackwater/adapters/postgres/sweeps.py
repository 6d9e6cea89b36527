"""What sweepers did last, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from slackwater.adapters import kept_messages
from slackwater.adapters.postgres.database import Database
from slackwater.adapters.postgres.tables import sweeps as table
from slackwater.core.sweep import Sweep

_NAMES = [column.name for column in table.columns]


class PostgresSweeps:
    """The sweep store; each act is one statement."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, sweep: Sweep) -> None:
        """Keep a sweeper's latest round; one that is told late is dropped."""
        values = {name: getattr(sweep, name) for name in _NAMES}
        values |= {name: kept_messages.legible(values[name]) for name in ("note", "error")}
        new = insert(table).values(values)
        statement = new.on_conflict_do_update(
            index_elements=["sweeper"],
            set_={name: new.excluded[name] for name in _NAMES if name != "sweeper"},
            where=table.c.at <= new.excluded.at,
        )
        self._database.run(lambda connection: connection.execute(statement))

    def all(self) -> Sequence[Sweep]:
        """Return each sweeper's latest round, by name."""
        query = select(table).order_by(table.c.sweeper)
        return [Sweep(**row._mapping) for row in self._database.run(lambda connection: connection.execute(query).all())]

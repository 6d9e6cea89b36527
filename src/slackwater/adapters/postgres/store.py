"""The store in PostgreSQL: SQLAlchemy Core on psycopg."""

from __future__ import annotations

from datetime import timedelta

from slackwater.adapters.postgres.bundles import PostgresBundles
from slackwater.adapters.postgres.canaries import PostgresCanaries
from slackwater.adapters.postgres.database import open_database
from slackwater.adapters.postgres.dead_letters import PostgresDeadLetters
from slackwater.adapters.postgres.fan_outs import PostgresEndings, PostgresFanOuts
from slackwater.adapters.postgres.holds import PostgresHolds
from slackwater.adapters.postgres.occurrences import PostgresOccurrences
from slackwater.adapters.postgres.runs import PostgresRuns
from slackwater.adapters.postgres.schema import Schema
from slackwater.adapters.postgres.sensed import PostgresPresence, PostgresReadings
from slackwater.adapters.postgres.sweeps import PostgresSweeps

STATEMENT_TIMEOUT = timedelta(seconds=30)


class PostgresStore:
    """Everything that is kept, in one schema of a PostgreSQL database.

    Safe for threads. Connects when first used; after a restart of the server the next call works again.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str = "slackwater",
        pool_size: int = 4,
        statement_timeout: timedelta = STATEMENT_TIMEOUT,
    ) -> None:
        """Make ready to connect.

        Args:
            url: `postgresql://USER@HOST/DATABASE`.
            schema: Where the tables are; another keeps a second environment apart in the same database.
            pool_size: Most connections that this process holds.
            statement_timeout: Longest that one statement may take.

        Raises:
            ConfigurationError: An address or a schema's name that cannot be.
        """
        self._database = open_database(url, schema=schema, pool_size=pool_size, statement_timeout=statement_timeout)
        self._schema = Schema(self._database)
        self.occurrences = PostgresOccurrences(self._database)
        self.fan_outs = PostgresFanOuts(self._database)
        self.endings = PostgresEndings(self._database)
        self.presence = PostgresPresence(self._database)
        self.canaries = PostgresCanaries(self._database)
        self.readings = PostgresReadings(self._database)
        self.runs = PostgresRuns(self._database)
        self.holds = PostgresHolds(self._database)
        self.bundles = PostgresBundles(self._database)
        self.dead_letters = PostgresDeadLetters(self._database)
        self.sweeps = PostgresSweeps(self._database)

    def check(self) -> None:
        """Make sure that it answers and is of this program's version.

        Raises:
            StoreUnavailable: It does not answer, within seconds.
            SchemaOutdated: It does, with another version's tables, or none.
        """
        self._schema.check()

    def migrate(self) -> None:
        """Bring it to this program's version; safe from several processes at once."""
        self._schema.migrate()

    def release_connections(self) -> None:
        """Drop pooled connections without closing them: for a process that has just been forked."""
        self._database.engine.dispose(close=False)

    def close(self) -> None:
        """Close its connections; a later call opens new ones."""
        self._database.engine.dispose()

"""The tables' version: looking at it, and bringing it up to this program's (alembic, without an ini file)."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from sqlalchemy import Connection, Text, column, select, table, text

from slackwater.adapters.postgres.database import Database
from slackwater.errors import SchemaOutdated

VERSION_TABLE = "schema_version"
_LOCK = 0x736C61636B  # "slack": migrations of one database, whatever the schema, wait for each other
SCRIPTS = Path(__file__).parent / "migrations"


class Schema:
    """One schema's tables, as a whole."""

    def __init__(self, database: Database, *, scripts: Path = SCRIPTS) -> None:
        self._database = database
        self._folder = scripts

    @cached_property
    def versions(self) -> list[str]:
        """All versions, the oldest first, by their scripts' names.

        Each worker's start asks for them, and should not have to load alembic for that.
        """
        return sorted(script.name.partition("_")[0] for script in (self._folder / "versions").glob("[0-9]*_*.py"))

    def check(self) -> None:
        """Make sure that the tables are of this program's version.

        Raises:
            StoreUnavailable: The database does not answer.
            SchemaOutdated: There are no tables, or they are older or newer.
        """
        self._judge(self._database.run(self._version))

    def migrate(self) -> None:
        """Create the schema or bring it up, in one transaction: a failure leaves it as it was.

        Safe to repeat, and for several processes at once: one goes first, the others find nothing to do.

        Raises:
            StoreUnavailable: The database does not answer.
            SchemaOutdated: The tables are newer than this program.
        """
        engine = self._database.engine.execution_options(isolation_level="READ COMMITTED")
        with self._database.translated(), engine.begin() as connection:
            # Waiting for another's migration, and a long one of our own, are no faults.
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            if self._version(connection) in {None, *self.versions}:
                self._upgrade(connection)
            self._judge(self._version(connection))

    def _upgrade(self, connection: Connection) -> None:
        # Late: loading it takes long, and only who migrates needs it.
        from alembic import command
        from alembic.config import Config

        schema = connection.dialect.identifier_preparer.quote_identifier(self._database.schema)
        connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {schema}"))
        # The scripts name no schema; LOCAL ends with the transaction.
        connection.execute(text(f"SET LOCAL search_path TO {schema}"))
        config = Config()
        config.set_main_option("script_location", str(self._folder).replace("%", "%%"))
        config.attributes["connection"] = connection.execution_options(schema_translate_map=None)
        config.attributes["schema"] = self._database.schema
        command.upgrade(config, "head")

    def _version(self, connection: Connection) -> str | None:
        quote = connection.dialect.identifier_preparer.quote_identifier
        name = f"{quote(self._database.schema)}.{quote(VERSION_TABLE)}"
        if connection.scalar(text("SELECT to_regclass(:name)"), {"name": name}) is None:
            return None
        versions = table(VERSION_TABLE, column("version_num", Text), schema=self._database.schema)
        return connection.scalar(select(versions.c.version_num))

    def _judge(self, version: str | None) -> None:
        head = self.versions[-1]
        if version == head:
            return
        where = f"store {self._database.where}, schema {self._database.schema!r}"
        if version is None:
            raise SchemaOutdated(f"{where}: it has no tables of ours; run `slackwater migrate`")
        if version in self.versions:
            raise SchemaOutdated(
                f"{where}: its tables are of version {version}, older than this program's {head}; "
                "run `slackwater migrate`"
            )
        raise SchemaOutdated(
            f"{where}: its tables are of version {version}, newer than this program's {head}, and do not go back; "
            "install the newer slackwater here, or run `slackwater migrate` on another schema"
        )

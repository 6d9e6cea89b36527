"""The database: its address, its connections, and what its errors mean; the only place that translates them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from slackwater.adapters.postgres.pipeline import Pipeline, piped
from slackwater.errors import ConfigurationError, SchemaOutdated, SlackwaterError, StoreUnavailable

_CONNECTING = {
    "application_name": "slackwater",
    "connect_timeout": 3,  # seconds
    # A server that answers nothing at all for so long (a cut cable) is given up.
    "tcp_user_timeout": 15_000,  # milliseconds
    "keepalives_idle": 15,  # seconds
}
"""How to connect, where the address does not say so itself."""
_SCHEMES = frozenset({"postgresql", "postgres", "postgresql+psycopg"})
_SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")
_SECRETS = ("password", "sslpassword")
_UNKNOWN = (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName)
_GONE = (psycopg.OperationalError, psycopg.InterfaceError, errors.ReadOnlySqlTransaction)

_DURABLY = text("SET LOCAL synchronous_commit TO on")

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Database:
    """One schema of one database, behind a small pool of connections."""

    engine: Engine
    where: str
    schema: str

    def run(self, act: Callable[[Connection], T]) -> T:
        """Run an act of one statement, which commits by itself.

        Where the connection was lost it is run once more, on a new one: after a restart of the server each pooled
        connection is found dead only by using it. So an act may happen twice, which each of a store's acts allows.

        Raises:
            StoreUnavailable: The database does not answer.
            SchemaOutdated: It does, without our tables.
        """
        with self.translated():
            try:
                return self._once(act)
            except DBAPIError as error:
                if not error.connection_invalidated:
                    raise
                return self._once(act)

    def transact(self, act: Callable[[Connection], T]) -> T:
        """Run an act of several statements in one transaction that is on disk when this returns.

        Where the connection was lost before the commit, nothing has happened, and it is run once more on a new one.
        Lost in the commit itself, nobody knows: that is told, and not repeated.

        Raises:
            StoreUnavailable: The database does not answer.
            SchemaOutdated: It does, without our tables.
        """
        committing = False

        def whole() -> T:
            nonlocal committing
            with self.engine.execution_options(isolation_level="READ COMMITTED").connect() as connection:
                # LOCAL: a role's or a database's own default (off) must not lose what was promised.
                connection.execute(_DURABLY)
                result = act(connection)
                committing = True
                connection.commit()
                return result

        with self.translated():
            try:
                return whole()
            except DBAPIError as error:
                if committing or not error.connection_invalidated:
                    raise
                return whole()

    def pipe(self, act: Callable[[Pipeline], T], *, repeatable: bool) -> T:
        """Run an act in one transaction that is on disk when this returns, its statements in a pipeline.

        The act's first statement must be one that commits durably (`pulse.durably`). The commit is sent with whatever
        the act has not read the answer of.

        Args:
            act: What to send; as `transact`, it is run once more where the connection was lost before the commit.
            repeatable: It may happen twice: it is run once more also where the connection was lost in the commit.

        Raises:
            StoreUnavailable: The database does not answer.
            SchemaOutdated: It does, without our tables.
        """
        committing = False

        def whole() -> T:
            nonlocal committing
            with self.engine.connect() as connection, _lost_is_invalidated(connection) as driver, piped(driver):
                pipeline = Pipeline(driver)
                pipeline.begin()
                result = act(pipeline)
                committing = not repeatable
                pipeline.commit()
            return result

        with self.translated():
            try:
                return whole()
            except psycopg.Error as error:
                if committing or not _is_lost(error):
                    raise
                return whole()

    def _once(self, act: Callable[[Connection], T]) -> T:
        with self.engine.connect() as connection:
            return act(connection)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn the driver's errors into ours."""
        try:
            yield
        except PoolTimeout as error:
            raise StoreUnavailable(
                f"store {self.where}: no connection of its pool came free; raise pool_size", where=self.where
            ) from error
        except DBAPIError as error:
            if (ours := self._translation(error.orig, lost=error.connection_invalidated)) is None:
                raise
            raise ours from error
        except psycopg.Error as error:
            if (ours := self._translation(error, lost=False)) is None:
                raise
            raise ours from error

    def _translation(self, error: BaseException | None, *, lost: bool) -> SlackwaterError | None:
        cause = (str(error).strip() or type(error).__name__).splitlines()[0]
        if isinstance(error, _UNKNOWN):
            return SchemaOutdated(f"store {self.where}: {cause}; run `slackwater migrate`")
        if isinstance(error, errors.InsufficientPrivilege):
            return ConfigurationError(f"store {self.where}: {cause}; grant its user schema {self.schema!r}")
        if lost or isinstance(error, _GONE):
            return StoreUnavailable(f"store {self.where} does not answer: {cause}", where=self.where)
        return None


def _is_lost(error: psycopg.Error) -> bool:
    # Without a code: the client's own words for a connection that ended. 57P: the server's, as it goes.
    return isinstance(error, _GONE) and (error.sqlstate is None or error.sqlstate.startswith("57P"))


@contextmanager
def _lost_is_invalidated(connection: Connection) -> Iterator[psycopg.Connection[Any]]:
    """Give the driver's own connection; have the pool drop it where an error has cost it."""
    driver: Any = connection.connection.dbapi_connection
    try:
        yield driver
    except BaseException as error:
        # What is under way in a pipeline cannot be told apart any more: begin anew rather than clean up.
        connection.invalidate(error if isinstance(error, Exception) else None)
        raise


def open_database(address: str, *, schema: str, pool_size: int, statement_timeout: timedelta) -> Database:
    """Make ready to connect; connects to nothing yet.

    Args:
        address: `postgresql://USER@HOST/DATABASE`.
        schema: Where its tables are.
        pool_size: Most connections that a process holds.
        statement_timeout: Longest that a statement may take, waiting for locks included.

    Raises:
        ConfigurationError: An address or a schema's name that cannot be.
    """
    if not _SCHEMA.fullmatch(schema):
        raise ConfigurationError(
            f"store: no schema can be named {schema!r}; give letters, digits, '_' and '-', at most 63"
        )
    url = _url(address)
    engine = create_engine(
        url,
        connect_args={name: value for name, value in _CONNECTING.items() if name not in url.query},
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=10,
        # Statements are single: no BEGIN and COMMIT around each, so one act is one round trip.
        isolation_level="AUTOCOMMIT",
        execution_options={"schema_translate_map": {None: schema}},
    )
    _settle_sessions(engine, statement_timeout)
    return Database(engine=engine, where=_masked(url), schema=schema)


def _url(address: str) -> URL:
    try:
        url = make_url(address)
    except (ArgumentError, NoSuchModuleError, ValueError):
        # Not chained: the original repeats the address, password and all.
        raise ConfigurationError("store: its address cannot be read; give postgresql://USER@HOST/DATABASE") from None
    if url.drivername not in _SCHEMES:
        raise ConfigurationError(
            f"store {_masked(url)}: {url.drivername!r} is no scheme of ours; give postgresql://USER@HOST/DATABASE"
        )
    return url.set(drivername="postgresql+psycopg")


def _masked(url: URL) -> str:
    shown = url.difference_update_query(_SECRETS)
    return shown.set(drivername=url.drivername.partition("+")[0]).render_as_string(hide_password=True)


def _settle_sessions(engine: Engine, statement_timeout: timedelta) -> None:
    milliseconds = int(statement_timeout.total_seconds() * 1000)

    def settle(connection: psycopg.Connection[Any], _record: object) -> None:
        # Not as start-up `options`, which a connection pooler in between refuses.
        before = connection.autocommit
        connection.autocommit = True
        connection.execute(f"SET statement_timeout = {milliseconds}")
        connection.execute("SET timezone = 'UTC'")
        connection.execute("SET default_transaction_isolation = 'read committed'")
        connection.autocommit = before

    event.listen(engine, "connect", settle)

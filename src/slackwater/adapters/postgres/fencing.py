"""Checking a fence inside the caller's own transaction: what a stale holder still wants to commit is refused.

The lease's row stays locked for share until the caller commits or rolls back, so nobody can take the lease between the
check and the commit; who wants it is told to wait. Nothing of ours waits for that lock.
"""

from __future__ import annotations

import sys
from contextlib import closing
from typing import Any, Protocol

from psycopg import sql
from psycopg.errors import UndefinedTable
from psycopg.pq import TransactionStatus
from sqlalchemy import BigInteger, Connection, Text, column, select, table

from slackwater.adapters.transactions import OUTSIDE, refuse_autocommit
from slackwater.errors import ConfigurationError, StaleFence


class Cursor(Protocol):
    """A cursor of the DB-API on a PostgreSQL connection: psycopg's, or Django's."""

    def execute(self, query: Any, params: Any = None, /) -> Any:
        """Run a statement."""
        ...

    def fetchone(self) -> Any:
        """Return the next row; None where there is none."""
        ...


def check_fence(connection: Any, *, schema: str, lease: str, fence: int) -> None:
    """Make sure that a lease is still held under a fence, until the caller's transaction ends.

    Args:
        connection: What commits the work, in its transaction: a session or connection of SQLAlchemy's, or a connection
            or cursor of Django's or psycopg's.
        schema: Where Slackwater's tables are, in the same database.
        lease: Its name.
        fence: The fencing token under which the body runs.

    Raises:
        StaleFence: Another has taken it, or it was ended: roll back.
        ConfigurationError: The connection is in no transaction, so the check would protect nothing; or it is to another
            database, or no connection.
    """
    refuse_autocommit(connection)
    try:
        holds = _holds(connection, schema=schema, lease=lease, fence=fence)
    except Exception as error:
        if _sqlstate(error) == UndefinedTable.sqlstate:
            raise ConfigurationError(
                f"a fence is checked in a database without the table {schema}.leases; check it on a connection to the "
                "store's own database"
            ) from error
        raise
    if not holds:
        raise StaleFence(lease, fence)


def _holds(connection: Any, *, schema: str, lease: str, fence: int) -> bool:
    if _is_session(connection):
        connection = connection.connection()
    if isinstance(connection, Connection):
        return _holds_in_sqlalchemy(connection, schema=schema, lease=lease, fence=fence)
    if hasattr(connection, "fetchone"):
        return _holds_by_cursor(connection, schema=schema, lease=lease, fence=fence)
    if hasattr(connection, "cursor"):
        with closing(connection.cursor()) as cursor:
            return _holds_by_cursor(cursor, schema=schema, lease=lease, fence=fence)
    raise ConfigurationError(
        f"a fence cannot be checked with {type(connection).__name__}; give a session or connection of SQLAlchemy's, or "
        "a connection or cursor of Django's or psycopg's"
    )


def _is_session(connection: Any) -> bool:
    # Who has a session has loaded the ORM; no other process has to.
    orm: Any = sys.modules.get("sqlalchemy.orm")
    return orm is not None and isinstance(connection, (orm.Session, orm.scoped_session))


def _holds_in_sqlalchemy(connection: Connection, *, schema: str, lease: str, fence: int) -> bool:
    leases = table("leases", column("name", Text), column("fence", BigInteger), schema=schema)
    query = select(leases.c.fence).where(leases.c.name == lease, leases.c.fence == fence).with_for_update(read=True)
    found = connection.execute(query).one_or_none()
    _refuse_outside_a_transaction(connection.connection.dbapi_connection)
    return found is not None


def _holds_by_cursor(cursor: Cursor, *, schema: str, lease: str, fence: int) -> bool:
    quoted = sql.Identifier(schema, "leases").as_string(None)
    cursor.execute(f"SELECT fence FROM {quoted} WHERE name = %s AND fence = %s FOR SHARE", (lease, fence))  # noqa: S608
    found = cursor.fetchone()
    _refuse_outside_a_transaction(getattr(cursor, "connection", None))
    return found is not None


def _refuse_outside_a_transaction(connection: Any) -> None:
    # Where the statement was its own transaction, its lock is gone already. A driver that does not tell is believed.
    status = getattr(getattr(connection, "info", None), "transaction_status", TransactionStatus.INTRANS)
    if status == TransactionStatus.IDLE:
        raise ConfigurationError(OUTSIDE)


def _sqlstate(error: BaseException) -> str | None:
    """Return the driver's code of an error, which SQLAlchemy (`orig`) and Django (its cause) have wrapped."""
    driver = getattr(error, "orig", None) or error.__cause__ or error
    return getattr(driver, "sqlstate", None) or getattr(driver, "pgcode", None)

"""Checking a fence inside the caller's own transaction: what a stale holder still wants to commit is refused.

The lease's row stays locked for share until the caller commits or rolls back, so nobody can take the lease between the
check and the commit; who wants it is told to wait. Nothing of ours waits for that lock.
"""

from __future__ import annotations

from typing import Any, Protocol

from psycopg import sql
from psycopg.pq import TransactionStatus
from sqlalchemy import BigInteger, Connection, Text, column, select, table

from slackwater.errors import ConfigurationError, StaleFence


class Cursor(Protocol):
    """A cursor of the DB-API on a PostgreSQL connection: psycopg's, or Django's."""

    def execute(self, query: Any, params: Any = None, /) -> Any:
        """Run a statement."""
        ...

    def fetchone(self) -> Any:
        """Return the next row; None where there is none."""
        ...


def check_fence(connection: Connection, *, schema: str, lease: str, fence: int) -> None:
    """Make sure that a lease is still held under a fence, until the caller's transaction ends.

    Args:
        connection: The one that commits the work, in its transaction.
        schema: Where Slackwater's tables are, in the same database.
        lease: Its name.
        fence: The fencing token under which the body runs.

    Raises:
        StaleFence: Another has taken it, or it was ended: roll back.
        ConfigurationError: The connection is in no transaction, so the check would protect nothing.
    """
    leases = table("leases", column("name", Text), column("fence", BigInteger), schema=schema)
    query = select(leases.c.fence).where(leases.c.name == lease, leases.c.fence == fence).with_for_update(read=True)
    found = connection.execute(query).one_or_none()
    _refuse_outside_a_transaction(connection.connection.dbapi_connection)
    if found is None:
        raise StaleFence(lease, fence)


def check_fence_with(cursor: Cursor, *, schema: str, lease: str, fence: int) -> None:
    """Make sure that a lease is still held under a fence, as `check_fence`, by a cursor of the DB-API.

    Raises:
        StaleFence: Another has taken it, or it was ended: roll back.
        ConfigurationError: The connection is in no transaction, so the check would protect nothing.
    """
    quoted = sql.Identifier(schema, "leases").as_string(None)
    cursor.execute(f"SELECT fence FROM {quoted} WHERE name = %s AND fence = %s FOR SHARE", (lease, fence))  # noqa: S608
    found = cursor.fetchone()
    _refuse_outside_a_transaction(getattr(cursor, "connection", None))
    if found is None:
        raise StaleFence(lease, fence)


def _refuse_outside_a_transaction(connection: Any) -> None:
    # Where the statement was its own transaction, its lock is gone already. A driver that does not tell is believed.
    status = getattr(getattr(connection, "info", None), "transaction_status", TransactionStatus.INTRANS)
    if status == TransactionStatus.IDLE:
        raise ConfigurationError("a fence is checked outside a transaction, where it protects nothing; begin one first")

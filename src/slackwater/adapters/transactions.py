"""The transaction of the application's own code, seen from outside: whether there is one.

Told before a statement runs: where each statement commits by itself, a refusal that comes after it comes too late.
"""

from __future__ import annotations

from typing import Any

from psycopg.pq import TransactionStatus

from slackwater.adapters.django import connections as django
from slackwater.errors import ConfigurationError

OUTSIDE = (
    "a fence is checked outside a transaction, where it protects nothing; begin one first "
    "(Django: transaction.atomic(); SQLAlchemy: session.begin(); psycopg: connection.transaction())"
)


def refuse_autocommit(connection: Any) -> None:
    """Make sure that a connection does not commit each statement by itself, as far as it tells.

    Raises:
        ConfigurationError: It does; or it is Django's, of another kind of database than PostgreSQL.
    """
    if (theirs := django.connection_of(connection)) is not None:
        if theirs.vendor != "postgresql":
            raise ConfigurationError(
                f"Django's database {theirs.alias!r} is {theirs.display_name}, and leases are in PostgreSQL; check the "
                "fence on a connection to the store's own database"
            )
        commits_each = django.commits_each_statement(theirs)
    else:
        cursor = hasattr(connection, "fetchone")
        commits_each = _commits_each_statement(getattr(connection, "connection", None) if cursor else connection)
    if commits_each:
        raise ConfigurationError(OUTSIDE)


def _commits_each_statement(connection: Any) -> bool:
    """Tell it of a driver's connection (psycopg, psycopg2): in autocommit, and no transaction was begun in it."""
    status = getattr(getattr(connection, "info", None), "transaction_status", None)
    return getattr(connection, "autocommit", False) is True and status == TransactionStatus.IDLE

"""Django's database connections, known by what they can do: Django itself is not imported, and need not be there."""

from __future__ import annotations

from typing import Any, Protocol, cast


class DjangoConnection(Protocol):
    """`django.db.connection`, or one of `connections`."""

    alias: str
    vendor: str
    display_name: str
    in_atomic_block: bool

    def get_autocommit(self) -> bool:
        """Tell whether each statement commits by itself, outside of `atomic`."""
        ...


def connection_of(given: Any) -> DjangoConnection | None:
    """Return Django's connection behind a connection or a cursor of Django's; None for anything else's."""
    for one in (given, getattr(given, "db", None)):
        if hasattr(one, "in_atomic_block") and hasattr(one, "get_autocommit"):
            return cast("DjangoConnection", one)
    return None


def commits_each_statement(connection: DjangoConnection) -> bool:
    """Tell whether a connection is outside of `transaction.atomic()`, and manages no transaction by hand either."""
    return not connection.in_atomic_block and connection.get_autocommit()

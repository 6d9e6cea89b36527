"""What an application commits its own work with, each in its own idiom: Django, SQLAlchemy, psycopg."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import psycopg
from sqlalchemy import create_engine
from sqlalchemy.orm import scoped_session, sessionmaker

KINDS = ("django", "django cursor", "session", "scoped session", "psycopg")


def insert(table: str, values: Sequence[Any]) -> str:
    return f"INSERT INTO {table} VALUES ({', '.join('%s' for _ in values)})"  # noqa: S608 - the tests' own names


class Caller(Protocol):
    """One connection of an application's, to a database of its own tables."""

    fenceable: Any
    """What the application gives to `fence.check` and `sw.fenced`."""

    def transaction(self) -> AbstractContextManager[Any]:
        """Begin; commit at the block's end, or roll back at an error."""
        ...

    def inner(self) -> AbstractContextManager[Any]:
        """Begin a transaction inside the transaction: a savepoint."""
        ...

    def write(self, table: str, *values: Any) -> None:
        """Write one row."""
        ...


class SessionCaller:
    """A session of SQLAlchemy's, plain or scoped."""

    def __init__(self, session: Any) -> None:
        self.fenceable: Any = session

    def transaction(self) -> AbstractContextManager[Any]:
        begun: AbstractContextManager[Any] = self.fenceable.begin()
        return begun

    def inner(self) -> AbstractContextManager[Any]:
        begun: AbstractContextManager[Any] = self.fenceable.begin_nested()
        return begun

    def write(self, table: str, *values: Any) -> None:
        self.fenceable.connection().exec_driver_sql(insert(table, values), values)


class DriverCaller:
    """A connection of psycopg's."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.fenceable: Any = connection

    def transaction(self) -> AbstractContextManager[Any]:
        begun: AbstractContextManager[Any] = self.fenceable.transaction()
        return begun

    inner = transaction

    def write(self, table: str, *values: Any) -> None:
        self.fenceable.execute(insert(table, values), values)


def driver_url(url: str) -> str:
    """Return an address of SQLAlchemy's as the driver takes it."""
    return url.replace("+psycopg", "")


@contextmanager
def caller_at(kind: str, url: str) -> Iterator[Caller]:
    """Connect as an application of a kind does."""
    if kind.startswith("django"):
        # Late: each worker of the hard cases imports this module, and few of them need Django.
        from tests.contract.django_callers import DjangoCaller, DjangoCursorCaller, django_at

        with django_at(url):
            yield DjangoCursorCaller() if kind == "django cursor" else DjangoCaller()
    elif kind == "psycopg":
        with psycopg.connect(driver_url(url), autocommit=True) as connection:
            yield DriverCaller(connection)
    else:
        engine = create_engine(url)
        made: Any = sessionmaker(engine)
        session: Any = scoped_session(made) if kind == "scoped session" else made()
        yield SessionCaller(session)
        session.close()
        engine.dispose()

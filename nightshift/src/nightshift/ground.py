"""The ground a night stands on: a database of its own, migrated and filled, and a clean broker afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import redis
from kombu import Connection
from kombu.exceptions import KombuError
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from nightshift.errors import NightError
from slackwater.local import masked

Tell = Callable[[str], None]
CONNECT_WITHIN_S = 5
AMQP = frozenset({"amqp", "amqps", "pyamqp"})


def engine_of(url: str, *, connect_within_s: int | None = None) -> Engine:
    """Open an engine with psycopg 3, whatever way the URL names PostgreSQL."""
    parsed = make_url(url).set(drivername="postgresql+psycopg")
    bound = {} if connect_within_s is None else {"connect_timeout": connect_within_s}
    return create_engine(parsed, connect_args=bound)


def first_line(error: BaseException) -> str:
    """Return what a server or its driver says, in one line."""
    told = str(getattr(error, "orig", None) or error).strip()
    return told.splitlines()[0] if told else type(error).__name__


def create_database(server_url: str, name: str) -> str:
    """Create a database on a server; return its URL.

    Raises:
        NightError: The server refuses.
    """
    try:
        _administrate(server_url, f'CREATE DATABASE "{name}"')
    except DBAPIError as error:
        raise NightError(
            f"database server {masked(server_url)}: cannot create a database for the night ({first_line(error)}); "
            "give the user CREATEDB"
        ) from error
    return make_url(server_url).set(database=name, drivername="postgresql+psycopg").render_as_string(False)


@contextmanager
def own_database(server_url: str, name: str, *, left_behind: Tell | None = None) -> Iterator[str]:
    """Create a database for one night on a server, and drop it afterwards.

    Args:
        server_url: The server.
        name: The database's.
        left_behind: Told if it could not be dropped; None where that is all the same.

    Yields:
        Its URL.

    Raises:
        NightError: The server refuses.
    """
    url = create_database(server_url, name)
    try:
        yield url
    finally:
        drop_database(server_url, name, left_behind=left_behind)


def drop_database(server_url: str, name: str, *, left_behind: Tell | None) -> bool:
    """Drop a database, if it is there; return whether it is gone.

    Args:
        server_url: The server.
        name: The database's.
        left_behind: Told if the server refuses, or does not answer.
    """
    try:
        _administrate(server_url, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
    except DBAPIError as error:
        if left_behind is not None:
            where = masked(server_url)
            left_behind(f"note: database {name} is left on {where} ({first_line(error)}); drop it there")
        return False
    return True


def _administrate(server_url: str, statement: str) -> None:
    engine = engine_of(server_url, connect_within_s=CONNECT_WITHIN_S).execution_options(isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.execute(text(statement))
    finally:
        engine.dispose()


def clear_broker(url: str, *, prefix: str, queues: Sequence[str], left_behind: Tell) -> bool:
    """Take one night's queues and keys away from a broker or result backend, by their prefix; return whether it could.

    Args:
        url: The server.
        prefix: Of the night's keys.
        queues: The night's, by name.
        left_behind: Told if the server does not answer.
    """
    try:
        _clear(url, prefix=prefix, queues=queues)
    except (redis.RedisError, KombuError, OSError) as error:
        left_behind(f"note: what begins with {prefix} is left on {masked(url)} ({first_line(error)}); delete it there")
        return False
    return True


def _clear(url: str, *, prefix: str, queues: Sequence[str]) -> None:
    if urlsplit(url).scheme in AMQP:
        with Connection(url, connect_timeout=5, transport_options={"max_retries": 1}) as connection:
            channel: Any = connection.default_channel
            for queue in queues:
                channel.queue_delete(queue)
                channel.exchange_delete(queue)  # a lane's exchange has its queue's name
        return
    with redis.Redis.from_url(url) as client:
        for key in client.scan_iter(match=f"{prefix}*", count=1000):
            client.delete(key)

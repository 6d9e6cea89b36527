"""The ground a night stands on: a database of its own, migrated and filled, and a clean broker afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import redis
from kombu import Connection
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from nightshift.errors import NightError


def engine_of(url: str) -> Engine:
    """Open an engine with psycopg 3, whatever way the URL names PostgreSQL."""
    parsed = make_url(url)
    return create_engine(parsed.set(drivername="postgresql+psycopg"))


@contextmanager
def own_database(server_url: str, name: str) -> Iterator[str]:
    """Create a database for one night on a server, and drop it afterwards.

    Yields:
        Its URL.

    Raises:
        NightError: The server refuses.
    """
    admin = engine_of(server_url).execution_options(isolation_level="AUTOCOMMIT")
    where = make_url(server_url).render_as_string(hide_password=True)
    try:
        with admin.connect() as connection:
            connection.execute(text(f'CREATE DATABASE "{name}"'))
    except DBAPIError as error:
        reason = str(error.orig).strip().splitlines()[0]
        raise NightError(
            f"database server {where}: cannot create a database for the night ({reason}); give the user CREATEDB"
        ) from error
    try:
        yield make_url(server_url).set(database=name, drivername="postgresql+psycopg").render_as_string(False)
    finally:
        with admin.connect() as connection:
            connection.execute(text(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'))
        admin.dispose()


def clear_broker(url: str, *, prefix: str, queues: list[str]) -> None:
    """Take one night's queues and keys away from a broker or result backend, by their prefix."""
    if urlsplit(url).scheme.startswith("amqp"):
        with Connection(url) as connection:
            channel: Any = connection.default_channel
            for queue in queues:
                channel.queue_delete(queue)
        return
    with redis.Redis.from_url(url) as client:
        for key in client.scan_iter(match=f"{prefix}*", count=1000):
            client.delete(key)

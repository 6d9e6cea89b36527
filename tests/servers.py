"""Servers of the tests' own: a Valkey and a PostgreSQL for each process of pytest, and a place on a RabbitMQ."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import cycle
from urllib.parse import quote, urlsplit, urlunsplit
from uuid import uuid4

import kombu
import psutil  # type: ignore[import-untyped]
import pytest
import redis
import sqlalchemy as sa
from tests.rabbitmq_node import RabbitMQNode, missing

from slackwater.adapters.postgres import PostgresStore
from slackwater.local import Data, PostgreSQL, RunFolder, Supervisor, Valkey

_RABBITMQ = "amqp://guest:guest@127.0.0.1:5672//"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_DATABASES = range(1, 16)
_CTL_WITHIN_S = 20
_OWN = "slackwater_test_"
_EMPTIED = """
DO $$ DECLARE one record; BEGIN
  PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid();
  SET LOCAL session_replication_role = replica;
  FOR one IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_|^information_schema$|^slackwater$|^public$' LOOP
    EXECUTE format('DROP SCHEMA %I CASCADE', one.nspname);
  END LOOP;
  FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
    EXECUTE format('DROP TABLE public.%I', one.tablename);
  END LOOP;
  FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'slackwater' AND tablename !~ 'version|pulse' LOOP
    EXECUTE format('DELETE FROM slackwater.%I', one.tablename);
  END LOOP;
  UPDATE slackwater.pulse SET at = clock_timestamp(), up_since = clock_timestamp(), lives_for = '30 s';
END $$"""
_MANAGEMENT = "http://{host}:15672/api/queues"


@pytest.fixture(scope="session")
def server_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunFolder]:
    """The folder of the session's servers; their logs stay."""
    folder = tmp_path_factory.mktemp("servers")
    with RunFolder(folder, now=datetime.now(UTC), data=Data.DISCARD) as run:
        yield run


@pytest.fixture(scope="session")
def server_supervisor(server_folder: RunFolder) -> Iterator[Supervisor]:
    """What watches over the session's servers."""
    with Supervisor(server_folder) as supervisor:
        yield supervisor


@pytest.fixture(scope="session")
def valkey_url(server_folder: RunFolder, server_supervisor: Supervisor) -> str:
    """A Valkey of the session's own, database 0."""
    return Valkey(server_folder).start(server_supervisor)


@pytest.fixture(scope="session")
def valkey_databases() -> Iterator[int]:
    """Numbers of databases, in turn: what a test's last client still writes reaches the next test's database not."""
    return cycle(_DATABASES)


@pytest.fixture
def fresh_valkey_url(valkey_url: str, valkey_databases: Iterator[int]) -> str:
    """An empty database of the session's Valkey."""
    url = f"{valkey_url.rpartition('/')[0]}/{next(valkey_databases)}"
    with redis.Redis.from_url(url) as client:
        client.flushdb()
    return url


@pytest.fixture(scope="session")
def postgres_server(server_folder: RunFolder, server_supervisor: Supervisor) -> PostgreSQL:
    """A PostgreSQL of the session's own, started."""
    server = PostgreSQL(server_folder)
    server.start(server_supervisor)
    return server


@pytest.fixture
def postgres_url(postgres_server: PostgreSQL) -> Iterator[str]:
    """An empty database of the session's PostgreSQL, dropped after the test; an address for SQLAlchemy."""
    with _database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def migrated_database(postgres_server: PostgreSQL) -> Iterator[str]:
    """A database of the session's PostgreSQL with a store's tables; its address."""
    with _database(postgres_server) as url:
        store = PostgresStore(url)
        store.migrate()
        store.close()
        yield url


@pytest.fixture
def migrated_url(migrated_database: str) -> Iterator[str]:
    """The address of a store's tables without a row; emptied after the test, in a tenth of the time of a migration."""
    yield migrated_database
    _execute(migrated_database, _EMPTIED)


@contextmanager
def _database(server: PostgreSQL) -> Iterator[str]:
    name = f"test_{uuid4().hex[:12]}"
    _execute(server.url, f"CREATE DATABASE {name}")
    yield server.url_of(name)
    _execute(server.url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def rabbitmq_url() -> Iterator[str]:
    """A virtual host of the session's own where we may make one, else the given one (see `rabbitmq_prefix`).

    The server is the one that SLACKWATER_TEST_RABBITMQ names, or this machine's.
    """
    given = os.environ.get("SLACKWATER_TEST_RABBITMQ", _RABBITMQ)
    if (trouble := _trouble(given)) is not None:
        reason = f"no RabbitMQ answers at {kombu.Connection(given).as_uri()} ({trouble})"
        if os.environ.get("CI") == "true":
            pytest.fail(f"{reason}; start one, or name it in SLACKWATER_TEST_RABBITMQ")
        pytest.skip(reason)
    own = _virtual_host(given)
    yield given if own is None else urlunsplit(urlsplit(given)._replace(path="/" + quote(own, safe="")))
    if own is not None:
        _rabbitmqctl("delete_vhost", own)


@pytest.fixture
def rabbitmq_prefix(rabbitmq_url: str) -> Iterator[str]:
    """A prefix for names of queues that no other test has; queues with it are deleted after the test.

    Those in a virtual host of our own go with that; in another one only the management interface can name them.
    """
    prefix = f"test_{uuid4().hex[:12]}_"
    yield prefix
    if not urlsplit(rabbitmq_url).path.startswith(f"/{_OWN}"):
        with kombu.Connection(rabbitmq_url, connect_timeout=3) as connection:
            for name in _queue_names(rabbitmq_url, prefix):
                kombu.Queue(name, channel=connection.default_channel).delete()


@pytest.fixture(scope="session")
def rabbitmq_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQNode]:
    """A RabbitMQ node of the session's own, which a test may kill and start; where one can be started.

    About 10 s to start. A test leaves it running, and works in a virtual host of its own (`virtual_host()`).
    """
    if (reason := missing()) is not None:
        pytest.skip(reason)
    node = RabbitMQNode(tmp_path_factory.mktemp("rabbitmq_node"))
    try:
        node.up()
        yield node
    finally:
        node.close()


def _execute(url: str, statement: str) -> None:
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.execute(sa.text(statement))


def _trouble(url: str) -> str | None:
    """Return why a broker does not answer; None if it does."""
    with kombu.Connection(url, connect_timeout=3) as connection:
        try:
            connection.connect()
        except (*connection.connection_errors, *connection.channel_errors) as error:
            return str(error) or type(error).__name__
    return None


def _virtual_host(url: str) -> str | None:
    """Make a virtual host on this machine's RabbitMQ; None where that is not allowed, or it is another server."""
    parts = urlsplit(url)
    if parts.hostname not in _LOOPBACK or shutil.which("rabbitmqctl") is None:
        return None
    # What a killed run has left keeps some hundred of the server's file descriptors.
    for left in (_rabbitmqctl("list_vhosts", "name", "--no-table-headers") or "").splitlines():
        owner = left.removeprefix(_OWN).partition("_")[0]
        if left.startswith(_OWN) and owner.isdigit() and not psutil.pid_exists(int(owner)):
            _rabbitmqctl("delete_vhost", left)
    name, user = f"{_OWN}{os.getpid()}_{uuid4().hex[:12]}", parts.username or "guest"
    if _rabbitmqctl("add_vhost", name) is None:
        return None
    allowed = _rabbitmqctl("set_permissions", "-p", name, user, ".*", ".*", ".*") is not None
    if allowed and _trouble(urlunsplit(parts._replace(path="/" + name))) is None:
        return name
    _rabbitmqctl("delete_vhost", name)
    return None


def _queue_names(url: str, prefix: str) -> list[str]:
    """Return the queues with this prefix; none where there is no management interface (AMQP itself lists no queues)."""
    parts = urlsplit(url)
    credentials = base64.b64encode(f"{parts.username or 'guest'}:{parts.password or 'guest'}".encode()).decode()
    address = _MANAGEMENT.format(host=parts.hostname)
    request = urllib.request.Request(address, headers={"Authorization": f"Basic {credentials}"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=3) as answer:  # noqa: S310
            return [queue["name"] for queue in json.load(answer) if queue["name"].startswith(prefix)]
    except (OSError, ValueError):
        return []


def _rabbitmqctl(*words: str) -> str | None:
    """Return what it says; None where it cannot do that."""
    line = ["rabbitmqctl", "-q", *words]
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=_CTL_WITHIN_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None

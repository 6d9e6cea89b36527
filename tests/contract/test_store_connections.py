from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import Engine, event, make_url

from slackwater.adapters.postgres import PostgresStore
from slackwater.adapters.postgres.database import open_database
from slackwater.core.job import JobState
from slackwater.core.occurrence import Occurrence, OccurrenceState
from slackwater.core.reading import LaneCounts, LaneReading, Presence
from slackwater.errors import ConfigurationError, StoreUnavailable
from slackwater.ports import Ending

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
SPAN = timedelta(seconds=30)
PRESENCE = Presence(
    worker="network@one", boot=uuid4(), host="one", pid=1, started_at=NOW, refreshed_at=NOW, lives_for=SPAN,
    lanes={"network": LaneCounts(slots=4)},
)  # fmt: skip
FORK_AND_READ = """
import os, sys
from slackwater.adapters.postgres import PostgresStore
store = PostgresStore(sys.argv[1], pool_size=1)
store.migrate()
child = os.fork()
if child == 0:
    store.release_connections()
    store.presence.all()
    store.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
store.presence.all()
store.close()
"""


def plain(url: str) -> str:
    """Return an address as the driver itself reads it."""
    return url.replace("+psycopg", "")


def ten_of_each(store: PostgresStore) -> dict[str, Callable[[], object]]:
    ours = [Occurrence(id=uuid4(), entry=f"e{n}", task="t", due_at=NOW, start_by=NOW) for n in range(10)]
    ids = [str(uuid4()) for _ in range(10)]
    endings = [Ending(job=job, state=JobState.EXPIRED, reason="late", task="t", lane=None, at=NOW) for job in ids]
    first = ours[0].id
    return {
        "admit": lambda: store.occurrences.admit(ours, watermarks={one.entry: NOW for one in ours}),
        "advance": lambda: store.occurrences.advance(first, to=OccurrenceState.QUEUED, at=NOW),
        "add": lambda: store.fan_outs.add(first, ids),
        "unsettled": lambda: store.fan_outs.unsettled(first, after="", limit=10),
        "settle": lambda: store.fan_outs.settle(dict.fromkeys(ids, JobState.DONE), at=NOW),
        "open": store.occurrences.open,
        "since": lambda: store.occurrences.since(NOW),
        "get": lambda: store.occurrences.get(first),
        "record": lambda: store.endings.record(endings),
        "find": lambda: store.endings.find(ids),
        "refresh": lambda: store.presence.refresh(PRESENCE),
        "append": lambda: store.readings.append([LaneReading(at=NOW, lane=f"l{n}") for n in range(10)]),
        "prune": lambda: store.readings.prune(NOW),
    }


def backends(connection: psycopg.Connection[tuple[int]], user: str = "slackwater") -> list[int]:
    query = "SELECT pid FROM pg_stat_activity WHERE application_name = %s AND datname = current_database()"
    return [row[0] for row in connection.execute(query, [user])]


def end_all(url: str) -> None:
    """End the store's connections from the server's side, as a restart of it does."""
    with psycopg.connect(plain(url), autocommit=True) as connection:
        for pid in backends(connection):
            connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        assert backends(connection) == []


def test_every_act_is_one_statement_however_much_it_writes(postgres_store: PostgresStore) -> None:
    seen: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        counts = {}
        for name, act in ten_of_each(postgres_store).items():
            seen.clear()
            act()
            counts[name] = len(seen)
    finally:
        event.remove(Engine, "before_cursor_execute", note)

    assert counts == dict.fromkeys(counts, 1)


def test_a_refresh_of_presence_is_one_exchange_with_the_server(
    postgres_store: PostgresStore, migrated_url: str
) -> None:
    postgres_store.presence.refresh(PRESENCE)
    with psycopg.connect(plain(migrated_url), autocommit=True) as connection:
        query = "SELECT query, state FROM pg_stat_activity WHERE pid = ANY(%s)"
        last = connection.execute(query, [backends(connection)]).fetchall()

    # Were it wrapped in a transaction, the last thing said would be COMMIT or ROLLBACK.
    assert [(text.split()[:2], state) for text, state in last] == [(["WITH", "beat"], "idle")]


def test_the_next_call_works_after_the_server_has_ended_all_connections(
    postgres_store: PostgresStore, migrated_url: str
) -> None:
    acts = ten_of_each(postgres_store)
    for act in acts.values():
        act()

    for act in acts.values():
        end_all(migrated_url)
        act()

    assert len(postgres_store.occurrences.open()) == 10


def test_a_server_that_is_not_there_is_unavailable_with_its_address_but_no_password() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        port = taken.getsockname()[1]
        store = PostgresStore(f"postgresql://owl:hush-hush@127.0.0.1:{port}/night?sslpassword=hush-hush")
        with pytest.raises(StoreUnavailable, match="does not answer") as failure:
            store.check()

    assert failure.value.where == f"postgresql://owl:***@127.0.0.1:{port}/night"
    assert "hush" not in str(failure.value)
    assert "\n" not in str(failure.value)
    assert failure.value.__cause__ is not None


def test_a_server_that_accepts_and_stays_silent_is_given_up() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        store = PostgresStore(f"postgresql://owl@127.0.0.1:{silent.getsockname()[1]}/night")
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="timeout"):
            store.check()

    assert time.monotonic() - began < 30  # it ends at all: the driver's own limit is two minutes


def test_a_database_that_does_not_exist_is_unavailable(postgres_url: str) -> None:
    elsewhere = make_url(postgres_url).set(database="which_nobody_made")
    store = PostgresStore(elsewhere.render_as_string())

    with pytest.raises(StoreUnavailable, match="which_nobody_made"):
        store.migrate()


def test_a_statement_that_waits_too_long_is_given_up(migrated_url: str, postgres_store: PostgresStore) -> None:
    hasty = PostgresStore(migrated_url, statement_timeout=timedelta(milliseconds=100))
    with psycopg.connect(plain(migrated_url)) as holder:
        holder.execute("LOCK TABLE slackwater.presence")
        with pytest.raises(StoreUnavailable, match="statement timeout"):
            hasty.presence.refresh(PRESENCE)
    hasty.presence.refresh(PRESENCE)
    hasty.close()


def test_a_forked_child_leaves_its_parents_connection_alone(postgres_url: str) -> None:
    command = [sys.executable, "-c", FORK_AND_READ, postgres_url]
    end = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (end.returncode, end.stderr) == (0, "")


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_each_usual_scheme_is_taken(postgres_url: str, scheme: str) -> None:
    store = PostgresStore(postgres_url.replace("postgresql+psycopg", scheme))
    store.migrate()
    store.check()
    store.close()


@pytest.mark.parametrize(
    "address", ["mysql://owl:hush@host/night", "postgresql+asyncpg://owl:hush@host/night", "owl:hush@host", ""]
)
def test_another_address_is_refused_in_one_line_without_its_password(address: str) -> None:
    with pytest.raises(ConfigurationError, match="give postgresql://USER@HOST/DATABASE") as failure:
        PostgresStore(address)

    assert "hush" not in str(failure.value)


@pytest.mark.parametrize("name", ["", "a b", 'a"b', "x" * 64, "9nights"])
def test_a_schema_that_cannot_be_named_so_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="no schema can be named"):
        open_database("postgresql:///night", schema=name, pool_size=1, statement_timeout=SPAN)

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.contract.private_server import PrivateServer

from slackwater.adapters.memory import MemoryStore
from slackwater.adapters.postgres import PostgresStore
from slackwater.local import Data, RunFolder, Supervisor
from slackwater.ports import Store


@pytest.fixture
def postgres_store(migrated_url: str) -> Iterator[PostgresStore]:
    """A migrated store in a database of its own, whose address is `migrated_url`."""
    store = PostgresStore(migrated_url)
    store.presence.all()  # connected, as any store at work
    yield store
    store.close()


@pytest.fixture(params=["memory", "postgresql"])
def store(request: pytest.FixtureRequest) -> Store:
    """An empty store, of either kind."""
    if request.param == "memory":
        return MemoryStore()
    kept: PostgresStore = request.getfixturevalue("postgres_store")
    return kept


@pytest.fixture(scope="module")
def private_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateServer]:
    """A PostgreSQL of the module's own, not started."""
    folder: Path = tmp_path_factory.mktemp("private")
    with RunFolder(folder, now=datetime.now(UTC), data=Data.DISCARD) as run, Supervisor(run) as supervisor:
        yield PrivateServer(run, supervisor)

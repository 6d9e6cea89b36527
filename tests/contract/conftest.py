from __future__ import annotations

from collections.abc import Iterator

import pytest

from slackwater.adapters.memory import MemoryStore
from slackwater.adapters.postgres import PostgresStore
from slackwater.ports import Store


@pytest.fixture
def postgres_store(postgres_url: str) -> Iterator[PostgresStore]:
    """A migrated store in a database of its own."""
    store = PostgresStore(postgres_url)
    store.migrate()
    yield store
    store.close()


@pytest.fixture(params=["memory", "postgresql"])
def store(request: pytest.FixtureRequest) -> Store:
    """An empty store, of either kind."""
    if request.param == "memory":
        return MemoryStore()
    kept: PostgresStore = request.getfixturevalue("postgres_store")
    return kept

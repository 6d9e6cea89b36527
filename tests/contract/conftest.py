from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from uuid import uuid4

import psycopg
import pytest

from slackwater.adapters.memory import MemoryStore
from slackwater.adapters.postgres import PostgresStore
from slackwater.ports import Store

_SERVER = "postgresql://postgres@127.0.0.1:5432/"


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    name = f"slackwater_test_{os.getpid()}_{uuid4().hex[:8]}"
    with psycopg.connect(_SERVER + "postgres", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        yield _SERVER + name
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(scope="session")
def schema_names() -> Iterator[str]:
    return (f"store_{number}" for number in count())


@pytest.fixture
def schema(schema_names: Iterator[str]) -> str:
    """A schema's name that nobody has used: within one database a test is alone."""
    return next(schema_names)


@pytest.fixture
def postgres_store(postgres_url: str, schema: str) -> Iterator[PostgresStore]:
    store = PostgresStore(postgres_url, schema=schema)
    store.migrate()
    yield store
    store.close()


@pytest.fixture(params=["memory", "postgresql"])
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == "memory":
        return MemoryStore()
    kept: PostgresStore = request.getfixturevalue("postgres_store")
    return kept

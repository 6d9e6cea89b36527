from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.integration.cli.front_door import APP, FrontDoor, eventually

from slackwater.adapters.postgres import PostgresStore
from slackwater.local import PostgreSQL

FIRST_MIGRATION = "store: up to date\nschedule: from now on counts bake\n"


@pytest.fixture(scope="package")
def door(valkey_url: str, postgres_server: PostgreSQL) -> FrontDoor:
    """The command line with a broker and a migrated store of its own."""
    door = FrontDoor(
        env={
            "CELERY_BROKER_URL": valkey_url,
            "CELERY_RESULT_BACKEND": valkey_url,
            "SLACKWATER_STORE_URL": postgres_server.url,
            "SLACKWATER_PRESENCE_EVERY": "0.2",
            "SHOP_PREFIX": f"shop_{uuid4().hex[:8]}_",
        }
    )
    done = door.run("-A", APP, "migrate")
    assert (done.returncode, done.stdout) == (0, FIRST_MIGRATION), done.stderr
    return door


@pytest.fixture(scope="package")
def store(door: FrontDoor) -> Iterator[PostgresStore]:
    """The store that the command line uses."""
    store = PostgresStore(door.env["SLACKWATER_STORE_URL"], schema=f"{door.env['SHOP_PREFIX']}slackwater")
    yield store
    store.close()


@pytest.fixture(scope="package")
def workers(door: FrontDoor, store: PostgresStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two lanes at work; the folder of their log."""
    folder = tmp_path_factory.mktemp("workers")
    with door.start("worker", "till", "bakery", log=folder / "log"):
        eventually(
            lambda: {lane for one in store.presence.all() for lane in one.lanes} == {"till", "bakery"}, within_s=60
        )
        yield folder

"""Wards on either broker: a store of the session's own, a prefix of the test's own, and a link that can be hurt."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from uuid import uuid4

import pytest
from sqlalchemy import make_url
from tests.contract.private_server import PrivateServer
from tests.integration.cases.gateway import Gateway
from tests.integration.cases.ward import Ward, ward_at
from tests.integration.celery.application import Place

from slackwater.local import Data, PostgreSQL, RunFolder, Supervisor
from slackwater.testing import FaultProxy

BROKERS = ["valkey", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)]


@pytest.fixture(params=BROKERS)
def broker_url(request: pytest.FixtureRequest, fresh_valkey_url: str) -> str:
    return fresh_valkey_url if request.param == "valkey" else str(request.getfixturevalue("rabbitmq_url"))


@pytest.fixture
def place(broker_url: str, fresh_valkey_url: str, postgres_server: PostgreSQL, tmp_path: Path) -> Place:
    return Place(
        broker_url=broker_url,
        backend_url=fresh_valkey_url,
        store_url=postgres_server.url,
        prefix=f"t{uuid4().hex[:8]}_",
        folder=str(tmp_path),
    )


@pytest.fixture
def ward(place: Place) -> Iterator[Ward]:
    with ward_at(place) as ward:
        yield ward


@pytest.fixture
def link(broker_url: str) -> Iterator[FaultProxy]:
    """What the workers reach their broker through, in `linked`; nobody else does."""
    with FaultProxy.before(broker_url) as link:
        yield link


@pytest.fixture
def results_link(place: Place) -> Iterator[FaultProxy]:
    """What workers reach their result backend through, where a test tells them to."""
    with FaultProxy.before(place.backend_url) as link:
        yield link


@pytest.fixture
def store_link(place: Place) -> Iterator[tuple[FaultProxy, str]]:
    """What workers reach their store through, where a test tells them to, and its address."""
    url = make_url(place.store_url)
    folder, port = Path(str(url.query["host"])), int(str(url.query["port"]))
    with FaultProxy(str(folder / f".s.PGSQL.{port}"), listen=folder / f".s.PGSQL.{port + 1}") as link:
        yield link, url.update_query_dict({"port": str(port + 1)}).render_as_string(hide_password=False)


@pytest.fixture(scope="module")
def private_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateServer]:
    """A PostgreSQL of the module's own, not started."""
    folder: Path = tmp_path_factory.mktemp("private")
    with RunFolder(folder, now=datetime.now(UTC), data=Data.DISCARD) as run, Supervisor(run) as supervisor:
        yield PrivateServer(run, supervisor)


@pytest.fixture
def database_url(private_database: PrivateServer) -> Iterator[str]:
    yield private_database.start()
    private_database.thaw()
    private_database.stop()


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    gateway = Gateway()
    serving = Thread(target=gateway.serve_forever)
    serving.start()
    yield gateway
    gateway.ends.set()
    gateway.shutdown()
    serving.join()
    gateway.server_close()

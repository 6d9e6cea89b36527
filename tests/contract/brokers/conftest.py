"""One broker a test, of either kind, with an application and queues that are gone afterwards."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from celery import Celery
from tests.contract.brokers.links import Link, PrivateValkey

from slackwater.core.job import HEADER, Mark

RABBITMQ = os.environ.get("SLACKWATER_TEST_RABBITMQ", "amqp://guest:guest@127.0.0.1:5672//")


class Switch(Protocol):
    """What can be taken away and brought back."""

    def up(self) -> None: ...
    def down(self) -> None: ...


@dataclass
class Broker:
    """A real broker, and an application that publishes to it."""

    name: str
    app: Celery
    switch: Switch
    queues: list[str] = field(default_factory=list)

    def queue(self) -> str:
        """Return the name of a queue that nobody knows yet."""
        self.queues.append(f"sw-test-{uuid4()}")
        return self.queues[-1]

    @contextmanager
    def channel(self) -> Iterator[Any]:
        """Open a channel of kombu, whatever it is in this broker."""
        with self.app.connection_for_read() as connection:
            yield connection.channel()

    def publish(self, queue: str, *, priority: int | None = None, at: datetime | None = None) -> str:
        """Publish one job as an application does; marked if the instant is given."""
        headers = {} if at is None else {HEADER: Mark(published_at=at, lane=queue).to_header()}
        return str(self.app.send_task("noop", queue=queue, priority=priority, headers=headers).id)


def make_app(url: str, **options: Any) -> Celery:
    app = Celery("contract", broker=url, set_as_current=False)
    app.conf.update(broker_transport_options=options, task_ignore_result=True)
    return app


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateValkey]:
    server = PrivateValkey(tmp_path_factory.mktemp("valkey"))
    server.up()
    yield server
    server.down()


@pytest.fixture
def rabbitmq() -> Iterator[Link]:
    parts = urlsplit(RABBITMQ)
    host, port = parts.hostname or "127.0.0.1", parts.port or 5672
    try:
        socket.create_connection((host, port), timeout=3).close()
    except OSError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no RabbitMQ at {host}:{port}: {error}")
        pytest.skip(f"no RabbitMQ at {host}:{port}: {error}")
    link = Link(host, port)
    link.up()
    yield link
    link.down()


@pytest.fixture
def valkey_broker(valkey: PrivateValkey) -> Iterator[Broker]:
    app = make_app(valkey.url)
    yield Broker("valkey", app, valkey)
    app.close()


@pytest.fixture
def rabbitmq_broker(rabbitmq: Link) -> Iterator[Broker]:
    parts = urlsplit(RABBITMQ)
    url = parts._replace(netloc=f"{parts.username}:{parts.password}@127.0.0.1:{rabbitmq.port}").geturl()
    broker = Broker("rabbitmq", make_app(url, confirm_publish=True), rabbitmq)
    yield broker
    with broker.channel() as channel:
        for queue in broker.queues:
            channel.queue_delete(queue)
    broker.app.close()


@pytest.fixture(params=["valkey", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)])
def broker(request: pytest.FixtureRequest) -> Broker:
    found: Broker = request.getfixturevalue(f"{request.param}_broker")
    return found

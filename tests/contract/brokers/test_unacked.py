"""What is delivered and not acknowledged, as the gauge reads it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import kombu
import pytest
from tests.contract.brokers.conftest import Broker, make_app
from tests.contract.brokers.test_recovery import holding
from tests.integration.celery.spine import eventually
from tests.rabbitmq_node import RabbitMQNode

from slackwater.adapters.brokers import open_gauge
from slackwater.adapters.brokers.messages import open_messages
from slackwater.adapters.brokers.recovery import open_recovery
from slackwater.core.liveness import Owner
from slackwater.core.reading import QueueReading
from slackwater.errors import ConfigurationError


def reading(app: Any, queue: str, **options: Any) -> QueueReading:
    gauge = open_gauge(app, **options)
    try:
        return gauge.read([queue])[queue]
    finally:
        gauge.close()


@contextmanager
def entered(app: Any, owner: Owner) -> Iterator[None]:
    recovery = open_recovery(app, realm="books")
    recovery.enter(owner)
    yield
    recovery.forget(owner)
    recovery.close()


def test_without_a_worker_all_priorities_are_ready_and_nothing_is_unacknowledged(valkey_broker: Broker) -> None:
    queue = valkey_broker.queue()
    for priority in (0, 3, 6, *[9] * 7):
        valkey_broker.publish(queue, priority=priority)

    read = reading(valkey_broker.app, queue)

    assert (read.ready, read.unacked) == (10, 0)


def test_what_an_owner_has_taken_is_unacknowledged_and_no_longer_ready(valkey_broker: Broker) -> None:
    app, queue, owner = valkey_broker.app, valkey_broker.queue(), Owner(worker="till@one", boot=uuid4())
    other = valkey_broker.queue()
    for _ in range(10):
        app.send_task("noop", ("x" * 100_000,), queue=queue)
    valkey_broker.publish(other)
    with entered(app, owner), holding(app, owner, count=4, queue=queue), holding(app, owner, count=1, queue=other):
        read = reading(app, queue)
        recovery = open_recovery(app, realm="books")
        assert recovery.owners()[owner] == 5
        recovery.close()
        assert (read.ready, read.unacked) == (6, 4)
        assert reading(app, other).unacked == 1


def test_what_a_worker_without_owner_has_taken_counts_too(valkey_broker: Broker) -> None:
    app, queue = valkey_broker.app, valkey_broker.queue()
    for _ in range(3):
        valkey_broker.publish(queue)
    with app.connection_for_read() as connection:
        channel: Any = connection.channel()
        channel.basic_get(queue)
        read = reading(app, queue)
    assert (read.ready, read.unacked) == (2, 1)


def test_the_ids_of_what_owners_have_taken_are_listed(valkey_broker: Broker) -> None:
    app, queue, owner = valkey_broker.app, valkey_broker.queue(), Owner(worker="till@one", boot=uuid4())
    job = valkey_broker.publish(queue)
    messages = open_messages(app)
    with entered(app, owner), holding(app, owner, count=1, queue=queue):
        assert job in (messages.unacknowledged() or ())
    messages.close()


@pytest.mark.rabbitmq
def test_rabbitmq_tells_through_its_management_interface_and_nothing_without_it(rabbitmq_node: RabbitMQNode) -> None:
    app = make_app(rabbitmq_node.virtual_host(), confirm_publish=True)
    queue = f"till{uuid4().hex[:6]}"
    for _ in range(10):
        app.send_task("noop", queue=queue)
    url = rabbitmq_node.management_url
    with kombu.Connection(app.conf.broker_url) as connection:
        channel: Any = connection.channel()
        for _ in range(4):
            channel.basic_get(queue)

        def counted() -> bool:
            read = reading(app, queue, management_url=url)
            return (read.ready, read.unacked) == (6, 4)

        eventually(counted, within_s=20)
        assert reading(app, queue).unacked is None
        nobody = reading(app, queue, management_url="http://127.0.0.1:1")
        assert (nobody.ready, nobody.unacked) == (6, None)
    app.close()


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="give http://USER:PASSWORD@HOST:15672"):
        open_gauge(make_app("amqp://127.0.0.1:1//"), management_url="rabbit:15672")

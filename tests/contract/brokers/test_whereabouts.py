"""The contract of whereabouts: all that a broker has, or nobody can tell."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import kombu
import pytest
from tests.contract.brokers.conftest import Broker, make_app
from tests.integration.celery.spine import eventually
from tests.rabbitmq_node import RabbitMQNode

from slackwater.adapters.brokers import whereabouts
from slackwater.adapters.brokers.whereabouts import Whereabouts
from slackwater.errors import BrokerUnavailable

Open = Callable[..., Whereabouts]


@pytest.fixture
def look() -> Iterator[Open]:
    opened: list[Whereabouts] = []

    def open_one(app: Any, *queues: str, management_url: str | None = None) -> Whereabouts:
        opened.append(Whereabouts(app, queues, management_url=management_url))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


def test_valkey_names_what_waits_and_what_is_in_somebodys_hands(valkey_broker: Broker, look: Open) -> None:
    queue, other = valkey_broker.queue(), valkey_broker.queue()
    looking = look(valkey_broker.app, queue, other)
    assert looking.placed() == frozenset()
    jobs = frozenset([*(valkey_broker.publish(queue, priority=each) for each in (0, 9)), valkey_broker.publish(other)])
    with valkey_broker.app.connection_for_read() as connection:
        channel: Any = connection.channel()
        channel.basic_get(queue)
        assert looking.placed() == jobs
    assert looking.placed() == jobs


def test_valkey_does_not_tell_where_more_waits_than_is_listed(
    valkey_broker: Broker, look: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whereabouts, "LISTED", 2)
    queue = valkey_broker.queue()
    looking = look(valkey_broker.app, queue)
    jobs = frozenset(valkey_broker.publish(queue) for _ in range(2))
    assert looking.placed() == jobs
    valkey_broker.publish(queue)
    assert looking.placed() is None


@pytest.mark.rabbitmq
def test_rabbitmq_tells_that_nothing_is_there_and_only_with_its_management_interface(
    rabbitmq_node: RabbitMQNode, look: Open
) -> None:
    app, queue = make_app(rabbitmq_node.virtual_host(), confirm_publish=True), f"till{uuid4().hex[:6]}"
    looking = look(app, queue, management_url=rabbitmq_node.management_url)
    app.send_task("noop", queue=queue)
    assert looking.placed() is None
    with kombu.Connection(app.conf.broker_url) as connection:
        channel: Any = connection.channel()
        message = channel.basic_get(queue)
        # Its count of what is unacknowledged is up to five seconds old.
        eventually(lambda: looking.placed() is None, within_s=20)
        channel.basic_ack(message.delivery_tag)
        eventually(lambda: looking.placed() == frozenset(), within_s=20)
    assert look(app, queue).placed() is None
    app.close()


def test_a_broker_that_is_down_is_unavailable(valkey_broker: Broker, look: Open) -> None:
    looking = look(valkey_broker.app, valkey_broker.queue())
    valkey_broker.switch.down()
    try:
        with pytest.raises(BrokerUnavailable):
            looking.placed()
    finally:
        valkey_broker.switch.up()

"""The RabbitMQ node that fault tests may kill."""

from typing import Any

import kombu
import pytest
from tests.rabbitmq_node import RabbitMQNode

pytestmark = pytest.mark.rabbitmq


def _declare(url: str, name: str, channel: Any) -> kombu.Queue:
    queue: kombu.Queue = kombu.Queue(name, durable=True, queue_arguments={"x-queue-type": "quorum"}, channel=channel)
    queue.declare()
    return queue


def test_a_confirmed_message_is_there_after_the_node_was_killed_and_started_again(rabbitmq_node: RabbitMQNode) -> None:
    url = rabbitmq_node.virtual_host()
    with kombu.Connection(url, transport_options={"confirm_publish": True}) as connection:
        _declare(url, "words", connection.default_channel)
        connection.Producer().publish("kept", routing_key="words", delivery_mode=2)
    before = rabbitmq_node.pid

    rabbitmq_node.kill()
    rabbitmq_node.up()

    assert rabbitmq_node.pid != before
    with kombu.Connection(url) as connection:
        found = _declare(url, "words", connection.default_channel).get(no_ack=True)
        assert found is not None
        assert found.payload == "kept"


def test_virtual_hosts_of_two_tests_share_no_queue(rabbitmq_node: RabbitMQNode) -> None:
    first, second = rabbitmq_node.virtual_host(), rabbitmq_node.virtual_host()
    with kombu.Connection(first) as connection:
        _declare(first, "words", connection.default_channel)
        connection.Producer().publish("hers", routing_key="words")
    with kombu.Connection(second) as connection:
        assert _declare(second, "words", connection.default_channel).get(no_ack=True) is None

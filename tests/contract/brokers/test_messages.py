"""The contract of message inspection, over both brokers."""

import time
from collections.abc import Iterator, Mapping

import pytest
from tests.contract.brokers.conftest import Broker

from slackwater.adapters.brokers import open_gauge
from slackwater.errors import BrokerUnavailable, ConfigurationError
from slackwater.inspection import Messages, open_messages


@pytest.fixture
def messages(broker: Broker) -> Iterator[Messages]:
    opened = open_messages(broker.app)
    yield opened
    opened.close()


def test_every_waiting_message_is_named_with_its_queue(broker: Broker, messages: Messages) -> None:
    first, second, unknown = broker.queue(), broker.queue(), broker.queue()
    expected = {broker.publish(first, priority=priority): first for priority in (0, 3, 6, 9)}
    expected |= {broker.publish(second): second for _ in range(3)}

    assert messages.waiting([first, unknown, second]) == expected
    assert messages.waiting([unknown]) == {}
    assert messages.waiting([]) == {}


def test_looking_leaves_every_message_in_its_place(broker: Broker, messages: Messages) -> None:
    queue = broker.queue()
    jobs = [broker.publish(queue) for _ in range(5)]

    first, second = messages.waiting([queue]), messages.waiting([queue])

    assert first == second == dict.fromkeys(jobs, queue)
    _wait_until_ready(broker, queue, count=5)
    assert [_take(broker, queue) for _ in jobs] == jobs


def test_a_message_that_is_published_twice_is_named_once(broker: Broker, messages: Messages) -> None:
    queue = broker.queue()
    for _ in range(2):
        broker.app.send_task("noop", queue=queue, task_id="the-same")

    assert messages.waiting([queue]) == {"the-same": queue}


def test_a_broker_that_is_down_is_unavailable(broker: Broker, messages: Messages) -> None:
    queue = broker.queue()
    job = broker.publish(queue)
    broker.switch.down()
    with pytest.raises(BrokerUnavailable):
        messages.waiting([queue])
    broker.switch.up()

    assert eventually_waiting(messages, queue) == {job: queue}


def eventually_waiting(messages: Messages, queue: str) -> Mapping[str, str]:
    """Return what waits, once the broker that has been started answers: a Valkey first loads what it has kept."""
    until = time.monotonic() + 30
    while True:
        try:
            return messages.waiting([queue])
        except BrokerUnavailable:
            assert time.monotonic() < until
            time.sleep(0.05)


def test_on_valkey_what_is_delivered_and_not_acknowledged_is_named(valkey_broker: Broker) -> None:
    queue = valkey_broker.queue()
    jobs = [valkey_broker.publish(queue) for _ in range(3)]
    messages = open_messages(valkey_broker.app)
    with valkey_broker.channel() as channel:
        taken = [channel.basic_get(queue) for _ in range(2)]

        assert messages.unacknowledged() == frozenset(jobs[:2])
        assert messages.waiting([queue]) == {jobs[2]: queue}
        for message in taken:
            message.ack()

    assert messages.unacknowledged() == frozenset()
    messages.close()


def test_on_valkey_a_list_longer_than_a_page_is_named_to_its_end(valkey_broker: Broker) -> None:
    queue = valkey_broker.queue()
    jobs = {valkey_broker.publish(queue) for _ in range(1_001)}
    messages = open_messages(valkey_broker.app)

    assert messages.waiting([queue]).keys() == jobs
    messages.close()


@pytest.mark.rabbitmq
def test_rabbitmq_does_not_tell_what_is_unacknowledged(rabbitmq_broker: Broker) -> None:
    assert open_messages(rabbitmq_broker.app).unacknowledged() is None


@pytest.mark.rabbitmq
def test_on_rabbitmq_a_queue_that_is_being_consumed_is_refused(rabbitmq_broker: Broker) -> None:
    queue = rabbitmq_broker.queue()
    rabbitmq_broker.publish(queue)
    messages = open_messages(rabbitmq_broker.app)
    with rabbitmq_broker.channel() as channel:
        channel.basic_qos(0, 1, False)
        channel.basic_consume(queue, no_ack=False, consumer_tag="a-worker", callback=lambda message: None)
        with pytest.raises(ConfigurationError, match=f"{queue}.*stop the workers"):
            messages.waiting([queue])
    messages.close()


@pytest.mark.rabbitmq
def test_on_rabbitmq_more_than_the_limit_is_refused_before_anything_is_fetched(rabbitmq_broker: Broker) -> None:
    queue = rabbitmq_broker.queue()
    for _ in range(3):
        rabbitmq_broker.publish(queue)
    messages = open_messages(rabbitmq_broker.app, limit=2)

    with pytest.raises(ConfigurationError, match="3 messages"):
        messages.waiting([queue])

    messages.close()
    with rabbitmq_broker.channel() as channel:
        assert not channel.basic_get(queue, no_ack=True).delivery_info["redelivered"]


def _take(broker: Broker, queue: str) -> str:
    with broker.channel() as channel:
        return str(channel.basic_get(queue, no_ack=True).headers["id"])


def _wait_until_ready(broker: Broker, queue: str, *, count: int) -> None:
    """Wait for messages that were given back: RabbitMQ puts them back after it has confirmed the channel's end."""
    gauge = open_gauge(broker.app)
    deadline = time.monotonic() + 10
    while gauge.read([queue])[queue].ready != count:
        assert time.monotonic() < deadline, f"{count} messages are not ready again"
        time.sleep(0.02)
    gauge.close()

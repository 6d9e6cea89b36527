"""The contract of the gauge, over both brokers."""

import socket
from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.contract.brokers.conftest import Broker, make_app

from slackwater.adapters.brokers import open_gauge
from slackwater.adapters.brokers.connection import connect
from slackwater.adapters.brokers.rabbitmq import RabbitMQGauge
from slackwater.errors import BrokerUnavailable
from slackwater.ports import Gauge


@pytest.fixture
def gauge(broker: Broker) -> Iterator[Gauge]:
    opened = open_gauge(broker.app)
    yield opened
    opened.close()


def test_every_message_that_waits_is_counted_whatever_its_priority(broker: Broker, gauge: Gauge) -> None:
    queue = broker.queue()
    for priority in (0, 3, 6, 9, 0, 3, 6, 9, 5, None):
        broker.publish(queue, priority=priority)

    assert gauge.read([queue])[queue].ready == 10


def test_a_queue_that_the_broker_does_not_know_has_nothing_ready(broker: Broker, gauge: Gauge) -> None:
    first, unknown, second, also_unknown = (broker.queue() for _ in range(4))
    broker.publish(first)
    broker.publish(second)
    broker.publish(second)

    readings = gauge.read([unknown, first, also_unknown, second])

    assert {queue: reading.ready for queue, reading in readings.items()} == {
        unknown: 0,
        first: 1,
        also_unknown: 0,
        second: 2,
    }


@pytest.mark.rabbitmq
def test_on_rabbitmq_unknown_queues_leave_no_channel_open(rabbitmq_broker: Broker) -> None:
    connection = connect(rabbitmq_broker.app)
    gauge = RabbitMQGauge(connection)
    gauge.read([rabbitmq_broker.queue() for _ in range(3)])

    channels = connection.ask(lambda opened: set(getattr(opened.connection, "channels")))  # noqa: B009 - no stub has it

    gauge.close()
    assert channels == {0}, "channel 0 is the connection's own"


def test_a_queue_in_which_nothing_waits_has_no_oldest(broker: Broker, gauge: Gauge) -> None:
    queue = broker.queue()

    assert gauge.read([queue])[queue].oldest_published_at is None


def test_no_queues_are_no_readings(gauge: Gauge) -> None:
    assert gauge.read([]) == {}


def test_a_broker_that_is_down_is_unavailable_and_read_again_when_it_is_back(broker: Broker, gauge: Gauge) -> None:
    queue = broker.queue()
    broker.publish(queue)
    before = gauge.read([queue])

    broker.switch.down()
    with pytest.raises(BrokerUnavailable) as caught:
        gauge.read([queue])
    with pytest.raises(BrokerUnavailable):
        gauge.read([queue])
    broker.switch.up()

    assert gauge.read([queue]) == before
    assert "broker_url" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "guest@" not in str(caught.value)


def test_a_connection_that_died_between_two_readings_costs_none(broker: Broker, gauge: Gauge) -> None:
    queue = broker.queue()
    broker.publish(queue)
    before = gauge.read([queue])

    broker.switch.down()
    broker.switch.up()

    assert gauge.read([queue]) == before


def test_reading_changes_nothing(broker: Broker, gauge: Gauge) -> None:
    queue = broker.queue()
    job = broker.publish(queue)
    gauge.read([queue])
    gauge.read([queue])

    with broker.channel() as channel:
        message = channel.basic_get(queue, no_ack=True)

    assert message.headers["id"] == job
    assert not message.delivery_info.get("redelivered")


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_a_server_that_accepts_and_says_nothing_is_unavailable(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"{scheme}://someone:secret@127.0.0.1:{silent.getsockname()[1]}//"
        gauge = open_gauge(make_app(url), answer_within=timedelta(seconds=0.2))

        with pytest.raises(BrokerUnavailable) as caught:
            gauge.read(["any"])

    assert "secret" not in str(caught.value)

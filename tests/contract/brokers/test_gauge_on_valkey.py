"""What the gauge reads of Valkey beyond the contract: ages, and every shape of key and address that kombu knows."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
import redis
from celery import Celery
from tests.contract.brokers.conftest import Broker, make_app
from tests.contract.brokers.links import PrivateValkey

from slackwater.adapters.brokers import open_gauge, open_messages
from slackwater.core.reading import QueueReading
from slackwater.ports import Gauge

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)

OPTIONS = {
    "a prefix": {"global_keyprefix": "books:"},
    "another separator": {"sep": ":"},
    "other steps": {"priority_steps": [0, 2, 4, 6, 8]},
    "steps without a zero": {"priority_steps": [1, 5]},
    "a prefix and names": {"global_keyprefix": "x-", "sep": "|", "priority_steps": list(range(10)), "unacked_key": "u"},
}


@pytest.fixture
def gauge_of(valkey: PrivateValkey) -> Iterator[Callable[[Celery], Gauge]]:
    opened: list[Gauge] = []

    def open_one(app: Celery) -> Gauge:
        opened.append(open_gauge(app))
        return opened[-1]

    yield open_one
    for gauge in opened:
        gauge.close()


@pytest.fixture
def raw(valkey: PrivateValkey) -> Iterator[redis.Redis]:
    with redis.Redis(port=valkey.port) as client:
        yield client


def test_the_oldest_is_found_whichever_priority_it_has(
    valkey_broker: Broker, gauge_of: Callable[[Celery], Gauge]
) -> None:
    queue = valkey_broker.queue()
    for minutes, priority in ((0, 6), (1, 0), (2, 6), (3, 9)):
        valkey_broker.publish(queue, priority=priority, at=NOON + timedelta(minutes=minutes))

    assert gauge_of(valkey_broker.app).read([queue]) == {
        queue: QueueReading(ready=4, oldest_published_at=NOON, unacked=0)
    }


def test_the_oldest_of_each_queue_is_its_own(valkey_broker: Broker, gauge_of: Callable[[Celery], Gauge]) -> None:
    first, second = valkey_broker.queue(), valkey_broker.queue()
    valkey_broker.publish(first, at=NOON)
    valkey_broker.publish(second, at=NOON + timedelta(hours=1))

    readings = gauge_of(valkey_broker.app).read([first, second])

    assert readings[first].oldest_published_at == NOON
    assert readings[second].oldest_published_at == NOON + timedelta(hours=1)


def test_a_message_without_our_mark_counts_with_an_unknown_age(
    valkey_broker: Broker, gauge_of: Callable[[Celery], Gauge]
) -> None:
    queue = valkey_broker.queue()
    valkey_broker.publish(queue)

    assert gauge_of(valkey_broker.app).read([queue])[queue] == QueueReading(ready=1, unacked=0)


@pytest.mark.parametrize("garbage", ["not json", "[]", "7", '{"headers": 3}', '{"headers": {"slackwater": "?"}}'])
def test_anything_that_someone_put_into_the_list_counts_with_an_unknown_age(
    valkey_broker: Broker, gauge_of: Callable[[Celery], Gauge], raw: redis.Redis, garbage: str
) -> None:
    queue = valkey_broker.queue()
    raw.lpush(queue, garbage)

    assert gauge_of(valkey_broker.app).read([queue])[queue] == QueueReading(ready=1, unacked=0)
    assert open_messages(valkey_broker.app).waiting([queue]) == {}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_the_options_of_the_transport_are_honoured(
    valkey: PrivateValkey, gauge_of: Callable[[Celery], Gauge], options: dict[str, object]
) -> None:
    broker = Broker("valkey", make_app(valkey.url, **options), valkey)
    queue = broker.queue()
    jobs = {broker.publish(queue, priority=priority, at=NOON) for priority in range(1, 10)}
    messages = open_messages(broker.app)

    assert gauge_of(broker.app).read([queue])[queue] == QueueReading(ready=9, oldest_published_at=NOON, unacked=0)
    assert messages.waiting([queue]) == dict.fromkeys(jobs, queue)
    with broker.channel() as channel:
        taken = channel.basic_get(queue)
        assert messages.unacknowledged() == frozenset({taken.headers["id"]})
        taken.ack()
    messages.close()
    broker.app.close()


def test_a_socket_of_the_file_system_will_do(valkey: PrivateValkey, gauge_of: Callable[[Celery], Gauge]) -> None:
    broker = Broker("valkey", make_app(f"redis+socket://{valkey.folder}/sock"), valkey)
    queue = broker.queue()
    broker.publish(queue, at=NOON)

    assert gauge_of(broker.app).read([queue])[queue] == QueueReading(ready=1, oldest_published_at=NOON, unacked=0)
    broker.app.close()

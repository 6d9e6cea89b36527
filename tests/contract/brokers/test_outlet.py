"""Messages word for word: kept from a publish or from a delivery, and published again, over both brokers."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import kombu
import pytest
import redis
from celery import Celery, chain, chord, group
from tests.contract.brokers.conftest import Broker

from slackwater import Lane, Slackwater
from slackwater.adapters.brokers.outlet import Outlet
from slackwater.adapters.brokers.queues import DEAD_LETTERS
from slackwater.adapters.celery.verbatim import message_of, message_published
from slackwater.adapters.memory import MemoryStore
from slackwater.core.message import Message
from slackwater.errors import BrokerUnavailable

WAYS: dict[str, Callable[[Any], Any]] = {
    "args": lambda task: task.apply_async((1, "Käse", [None, {"a": 1.5}])),
    "kwargs": lambda task: task.apply_async((), {"z": 1, "a": 2}),
    "links": lambda task: task.apply_async((1,), link=task.s(2), link_error=task.si(3)),
    "chain": lambda task: chain(task.si(1), task.si(2), task.si(3)).apply_async(),
    "group": lambda task: group(task.si(1), task.si(2)).apply_async(),
    "chord": lambda task: chord([task.si(1), task.si(2)])(task.si(3)),
    "priority": lambda task: task.apply_async((1,), priority=6),
    "reply_to": lambda task: task.apply_async((1,), reply_to="somebody"),
    "compression": lambda task: task.apply_async((1, "x" * 500), compression="zlib"),
    "headers": lambda task: task.apply_async((1,), headers={"tenant": "t1", "n": None, "deep": {"b": 1, "a": [2]}}),
    "eta and limits": lambda task: task.apply_async((1,), countdown=100, time_limit=9, soft_time_limit=5),
    "another serializer": lambda task: task.apply_async((1,), serializer="yaml"),
    "delivery mode": lambda task: task.apply_async((1,), delivery_mode=1),
}


def noop(*args: Any, **kwargs: Any) -> None:
    """Do nothing."""


@pytest.fixture
def kept() -> list[Message]:
    return []


@pytest.fixture
def app(broker: Broker, kept: list[Message]) -> Celery:
    app = broker.app
    app.conf.update(task_ignore_result=False, result_backend="cache+memory://", accept_content=["json", "yaml"])
    prefix = f"t{uuid4().hex[:8]}_"
    Slackwater(app, store=MemoryStore(), lanes=[Lane("till", slots=1)], prefix=prefix)
    add: Any = app.task(name="noop", lane="till", shared=False)
    add(noop)
    broker.queues += [f"{prefix}{DEAD_LETTERS}", f"{prefix}till"]
    marking: Any = app.amqp_cls

    class Keeping(marking):  # type: ignore[misc]
        """Keeps what passes, and lets it pass."""

        def _create_task_sender(self) -> Any:
            stock = super()._create_task_sender()

            def send(producer: Any, name: str, message: Any, **options: Any) -> None:
                stock(producer, name, message, **options)  # marks it
                inner: Any = super(marking, self)._create_task_sender()
                kept.append(message_published(inner, producer, name, message, **options))

            return send

    app.amqp_cls = Keeping  # type: ignore[assignment]  # a class will do as well as its name
    app.__dict__.pop("amqp", None)
    return app


@pytest.fixture
def outlet(app: Celery) -> Iterator[Outlet]:
    opened = Outlet(app)
    yield opened
    opened.close()


def raw(broker: Broker) -> list[dict[str, Any]]:
    """Take everything that waits, as the broker has it, without what is about one delivery."""
    queue = broker.queues[-1]
    return _of_valkey(broker, queue) if broker.name == "valkey" else _of_rabbitmq(broker, queue)


def _of_valkey(broker: Broker, queue: str) -> list[dict[str, Any]]:
    found = []
    with redis.Redis.from_url(str(broker.app.conf.broker_url)) as client:
        for step in ("", "\x06\x163", "\x06\x166", "\x06\x169"):
            while (one := client.rpop(queue + step)) is not None:
                message: Any = json.loads(one)
                message["headers"] = list(message["headers"].items())
                del message["properties"]["delivery_tag"]
                found.append({**message, "list": step})
    return found


def _of_rabbitmq(broker: Broker, queue: str) -> list[dict[str, Any]]:
    found = []
    with broker.channel() as channel:
        while (one := channel.basic_get(queue, no_ack=True)) is not None:
            properties = dict(one.properties)
            headers = properties.pop("application_headers")
            # A quorum queue's own count, which it writes at each delivery, of those before it.
            headers.pop("x-delivery-count")
            headers = list(headers.items())
            found.append({"body": one.body, "headers": headers, "properties": properties})
    return found


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_what_was_kept_at_a_publish_is_published_again_field_for_field(
    broker: Broker, app: Celery, outlet: Outlet, kept: list[Message], way: Callable[[Any], Any]
) -> None:
    way(app.tasks["noop"])
    plain = raw(broker)
    mine = [message for message in kept if message.queue == broker.queues[-1]]

    outlet.publish(mine)

    assert plain
    assert raw(broker) == plain


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_what_was_kept_of_a_delivery_is_published_again_field_for_field(
    broker: Broker, app: Celery, outlet: Outlet, way: Callable[[Any], Any]
) -> None:
    way(app.tasks["noop"])
    delivered = [message_of(request) for request in _requests(broker, app, keep=True)]
    plain = raw(broker)

    outlet.publish(delivered)

    assert len(delivered) == len(plain)
    assert raw(broker) == plain


def test_what_a_task_does_to_its_arguments_does_not_reach_what_was_kept(
    broker: Broker, app: Celery, outlet: Outlet
) -> None:
    app.tasks["noop"].apply_async(([1],))
    [request] = _requests(broker, app, keep=False)
    request["args"][0].append(2)

    assert json.loads(message_of(request).body)[0] == [[1]]


def test_what_brokers_wrote_about_earlier_deliveries_is_left_out(
    broker: Broker, app: Celery, outlet: Outlet, kept: list[Message]
) -> None:
    stale: dict[str, Any] = {
        "redelivered": True,
        "x-delivery-count": 3,
        "x-death": [{"reason": "expired"}],
        "tenant": "t1",
    }

    app.tasks["noop"].apply_async((1,), headers=stale)
    outlet.publish([_with_headers(kept[0], stale)])

    for message in raw(broker):
        assert dict(message["headers"]).keys() & stale.keys() == {"tenant"}


def test_a_batch_is_published_whole_and_in_order(
    broker: Broker, app: Celery, outlet: Outlet, kept: list[Message]
) -> None:
    for number in range(300):
        app.tasks["noop"].apply_async((number,))
    plain = raw(broker)

    outlet.publish(kept)

    assert raw(broker) == plain
    assert len(plain) == 300


def test_no_messages_are_no_question_to_the_broker(broker: Broker, app: Celery, outlet: Outlet) -> None:
    broker.switch.down()
    outlet.publish([])
    broker.switch.up()


def test_a_broker_that_is_away_says_so_and_the_next_batch_goes_out(
    broker: Broker, app: Celery, outlet: Outlet, kept: list[Message]
) -> None:
    app.tasks["noop"].apply_async((1,))
    plain = raw(broker)
    outlet.publish(kept)
    raw(broker)
    broker.switch.down()
    with pytest.raises(BrokerUnavailable) as refused:
        outlet.publish(kept)
    broker.switch.up()
    outlet.publish(kept)

    assert refused.value.outcome_unknown
    assert raw(broker) == plain


@pytest.mark.rabbitmq
def test_a_queue_that_refuses_is_said(rabbitmq_broker: Broker) -> None:
    app = rabbitmq_broker.app
    name = rabbitmq_broker.queue()
    with rabbitmq_broker.channel() as channel:
        full = {"x-max-length": 0, "x-overflow": "reject-publish"}
        channel.queue_declare(name, durable=True, auto_delete=False, arguments=full)
    outlet = Outlet(app)
    message = Message(
        job="j", task="noop", queue=name, headers={}, body=b"[]", content_type="text/plain", content_encoding="utf-8"
    )

    with pytest.raises(BrokerUnavailable, match="refused 1 of 1"):
        outlet.publish([message])

    outlet.close()


def _with_headers(message: Message, headers: dict[str, Any]) -> Message:
    return Message(**{**vars(message), "headers": {**message.headers, **headers}})


def _requests(broker: Broker, app: Celery, *, keep: bool) -> list[dict[str, Any]]:
    """Take everything that waits as a worker does, up to what its tracer is given; put it back where it is to stay."""
    found = []
    with app.connection_for_read() as connection:
        channel: Any = connection.channel()
        queue: Any = kombu.Queue(broker.queues[-1], channel=channel)
        taken = []
        while (message := queue.get(no_ack=False, accept=["json", "yaml"])) is not None:
            taken.append(message)
            found.append(_as_traced(app, message))
        # Kombu puts back to the end that is published to, RabbitMQ to the place where it was.
        for message in taken:
            message.requeue() if keep else message.ack()
    if keep:
        _unflag(broker)
    return found


def _as_traced(app: Celery, message: Any) -> dict[str, Any]:
    task = app.tasks["noop"]
    request: Any = task.Request
    known: dict[str, Any] = dict(request(message, app=app, task=task).request_dict)
    args, kwargs, embed = message.payload
    return {**known, "args": args, "kwargs": kwargs, "hostname": "here", "is_eager": False, **embed}


def _unflag(broker: Broker) -> None:
    """Take the flag off what was put back on Valkey, where kombu writes it into the message."""
    if broker.name != "valkey":
        return
    with redis.Redis.from_url(str(broker.app.conf.broker_url)) as client:
        for step in ("", "\x06\x163", "\x06\x166", "\x06\x169"):
            key = broker.queues[-1] + step
            for place, one in enumerate(client.lrange(key, 0, -1)):
                message = json.loads(one)
                message["headers"].pop("redelivered", None)
                message["properties"]["delivery_info"].pop("redelivered", None)
                client.lset(key, place, json.dumps(message))

"""The lanes' queues, as every process declares them; RabbitMQ refuses a client that declares one otherwise."""

from __future__ import annotations

from typing import Any

from celery import Celery
from kombu import Exchange, Queue

from slackwater.adapters.brokers.connection import BrokerConnection, BrokerKind, connect

DEAD_LETTERS = "dead_letters"
"""Name, after the prefix, of the queue where RabbitMQ puts what it takes out of the lanes' queues."""

DELIVERY_LIMIT = 20
_NO_LIMIT = 1_000_000
_REFUSED = 406

AnyQueue: Any = Queue


class LaneQueue(AnyQueue):  # type: ignore[misc]
    """A queue that is never there without the one its dead letters go to.

    With at-least-once dead-lettering a message stays in its queue while that one is missing. It is no queue of the
    application's own, since a worker without `-Q` would consume it.
    """

    def declare(self, nowait: bool = False, channel: Any = None) -> Any:
        """Declare both."""
        name = (self.queue_arguments or {}).get("x-dead-letter-routing-key")
        if name:
            dead_letter_queue(name)(channel or self.channel).declare(nowait=nowait)
        return super().declare(nowait=nowait, channel=channel)


def plain_queue(name: str) -> Queue:
    """Return a lane's queue of Valkey, where arguments mean nothing."""
    return Queue(name, exchange=Exchange(name, type="direct"), routing_key=name)


def quorum_queue(name: str, *, prefix: str, limit: int) -> Queue:
    """Return a lane's queue of RabbitMQ.

    A quorum queue survives the loss of a node and counts deliveries. What is delivered too often, is rejected or has
    expired goes to the dead letters, and is only then taken out (at-least-once, which asks for reject-publish).

    Args:
        name: The queue's.
        prefix: The environment's, for the name of its dead letters' queue.
        limit: Deliveries after which a message is taken out.
    """
    arguments = {
        "x-queue-type": "quorum",
        "x-delivery-limit": limit,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": f"{prefix}{DEAD_LETTERS}",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
    made: Queue = LaneQueue(name, exchange=Exchange(name, type="direct"), routing_key=name, queue_arguments=arguments)
    return made


def dead_letter_queue(name: str) -> Any:
    """Return the queue of dead letters; one that comes back while the store is away must not be dropped at a limit."""
    arguments = {"x-queue-type": "quorum", "x-delivery-limit": _NO_LIMIT}
    return AnyQueue(name, exchange=Exchange(""), routing_key=name, queue_arguments=arguments)


def refused_queues(app: Celery) -> list[str]:
    """Declare the application's queues on RabbitMQ; list those that exist with other arguments, one line each.

    Raises:
        BrokerUnavailable: The broker does not answer.
    """
    connection = connect(app)
    if connection.kind is not BrokerKind.RABBITMQ:
        return []
    try:
        return [line for queue in (app.conf.task_queues or ()) for line in _refusal(connection, queue)]
    finally:
        connection.close()


def _refusal(connection: BrokerConnection, queue: Queue) -> list[str]:
    def declare(opened: Any) -> list[str]:
        try:
            queue(opened.channel()).declare()
        except opened.channel_errors as error:
            if getattr(error, "reply_code", None) != _REFUSED:
                raise
            said = " ".join(str(error.reply_text).split())
            return [
                f"queue {queue.name}: is there with other arguments than its lane asks for ({said}); delete it when it "
                f"is empty (rabbitmqctl delete_queue {queue.name}), or choose another prefix"
            ]
        return []

    return connection.ask(declare)

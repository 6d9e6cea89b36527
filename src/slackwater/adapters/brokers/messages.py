"""Inspection of messages: which ids wait, and which are delivered and not acknowledged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from celery import Celery

from slackwater.adapters.brokers.connection import ANSWER_WITHIN, BrokerKind, connect
from slackwater.adapters.brokers.rabbitmq import RabbitMQMessages
from slackwater.adapters.brokers.valkey import ValkeyMessages

LIMIT = 100_000
"""Messages that RabbitMQ is made to hand over and take back in one look, at most."""


class Messages(Protocol):
    """Looks at messages, for a ledger at rest: exact while nothing is published or consumed.

    The id is the message's header `id`, which is the job's; messages without one are passed over.
    """

    def waiting(self, queues: Sequence[str]) -> Mapping[str, str]:
        """Return the queue of every message that waits, by message id; a queue that is not there has none.

        An id that waits twice is named once, with the first of `queues` that has it.

        Raises:
            BrokerUnavailable: The broker does not answer.
            ConfigurationError: The broker cannot be asked that now (RabbitMQ: workers consume, or too many wait).
        """
        ...

    def unacknowledged(self) -> frozenset[str] | None:
        """Return ids of messages delivered and not acknowledged, of all queues; None where the broker cannot tell.

        Raises:
            BrokerUnavailable: The broker does not answer.
        """
        ...

    def close(self) -> None:
        """Close its connection."""
        ...


def open_messages(app: Celery, *, answer_within: timedelta = ANSWER_WITHIN, limit: int = LIMIT) -> Messages:
    """Return what looks at the messages of the broker that the application's workers read from.

    Args:
        app: The application.
        answer_within: How long the broker may take to connect, and for each answer.
        limit: Messages that may be fetched from RabbitMQ in one look.

    Raises:
        ConfigurationError: A broker whose messages cannot be looked at.
    """
    connection = connect(app, answer_within=answer_within)
    if connection.kind is BrokerKind.VALKEY:
        return ValkeyMessages(connection)
    return RabbitMQMessages(connection, limit=limit)

"""Reading queues of RabbitMQ.

AMQP gives a queue's depth (a passive declaration) and nothing of what is in it: no peek, no list, no count of what is
delivered and not acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import kombu

from slackwater.adapters.brokers.connection import BrokerConnection
from slackwater.adapters.brokers.management import Management
from slackwater.core.reading import QueueReading
from slackwater.errors import ConfigurationError

_NOT_FOUND = 404


class RabbitMQGauge:
    """Reads queues one after another (the `Gauge` port); about 250 us each. The age of what waits is unknown.

    What is delivered and not acknowledged is the management interface's to tell; unknown where there is none.
    """

    def __init__(self, connection: BrokerConnection, *, management: Management | None = None) -> None:
        self._connection = connection
        self._management = management

    def read(self, queues: Sequence[str]) -> Mapping[str, QueueReading]:
        """Return what the broker says of each queue; see the port."""
        found = self._connection.ask(lambda connection: dict(_readings(connection, queues)))
        if self._management is None or not queues:
            return found
        unacked = self._management.unacked(self._connection.ask(lambda connection: str(connection.virtual_host)))
        return {queue: replace(reading, unacked=unacked.get(queue)) for queue, reading in found.items()}

    def close(self) -> None:
        """Close its connection."""
        self._connection.close()


class RabbitMQMessages:
    """Lists messages by taking all and giving them back (the `Messages` protocol).

    Every message is fetched without acknowledgement on one channel, whose end puts all of them back in their places.
    Nothing is lost, but each carries the `redelivered` flag from then on, and in a quorum queue the look counts as one
    delivery towards its `x-delivery-limit`. So only while no worker consumes.
    """

    def __init__(self, connection: BrokerConnection, *, limit: int) -> None:
        """Take a connection.

        Args:
            connection: Where to look.
            limit: Messages that may be fetched at most, all queues together.
        """
        self._connection = connection
        self._limit = limit

    def waiting(self, queues: Sequence[str]) -> Mapping[str, str]:
        """Return the queue of every message that waits, by message id; see the protocol.

        Raises:
            ConfigurationError: A queue is being consumed, or more messages wait than `limit`; nothing was fetched.
        """
        return self._connection.ask(lambda connection: _listed(connection, queues, limit=self._limit))

    def unacknowledged(self) -> frozenset[str] | None:
        """Return None: the broker does not tell."""
        return None

    def close(self) -> None:
        """Close its connection."""
        self._connection.close()


def _readings(connection: kombu.Connection, queues: Sequence[str]) -> Iterator[tuple[str, QueueReading]]:
    for queue, declared in _declared(connection, queues):
        yield queue, QueueReading(ready=0 if declared is None else declared.message_count)


def _declared(connection: kombu.Connection, queues: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield what a passive declaration says of each queue; None for one that is not there.

    The broker answers for a missing queue by closing the channel; py-amqp opens it again before it raises.
    """
    channel: Any = connection.channel()
    for queue in queues:
        try:
            declared = channel.queue_declare(queue=queue, passive=True)
        except connection.channel_errors as error:
            if getattr(error, "reply_code", None) != _NOT_FOUND:
                raise
            declared = None
        yield queue, declared
    channel.close()


def _listed(connection: kombu.Connection, queues: Sequence[str], *, limit: int) -> dict[str, str]:
    declared = {queue: found for queue, found in _declared(connection, queues) if found is not None}
    if consumed := [queue for queue, found in declared.items() if found.consumer_count]:
        raise ConfigurationError(f"queues {', '.join(consumed)}: being consumed, so not to be listed; stop the workers")
    if (total := sum(found.message_count for found in declared.values())) > limit:
        raise ConfigurationError(f"queues hold {total} messages, more than the limit of {limit}; raise limit=")
    found: dict[str, str] = {}
    channel: Any = connection.channel()
    for queue in declared:
        for job in _fetched(channel, queue):
            found.setdefault(job, queue)
    channel.close()
    return found


def _fetched(channel: Any, queue: str) -> Iterator[str]:
    while (raw := channel.basic_get(queue, no_ack=False)) is not None:
        job = channel.message_to_python(raw).headers.get("id")
        if isinstance(job, str):
            yield job

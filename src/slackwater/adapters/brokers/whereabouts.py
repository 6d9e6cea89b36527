"""Whereabouts of messages: which jobs wait in queues or are in workers' hands, for whoever misses one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from celery import Celery

from slackwater.adapters.brokers.connection import BrokerKind, connect
from slackwater.adapters.brokers.gauge import open_gauge
from slackwater.adapters.brokers.messages import Messages, open_messages
from slackwater.core.reading import QueueReading

LISTED = 10_000
"""Messages that are listed at most; where more wait, nobody can say what is missing among them."""


class Whereabouts:
    """Looks where the jobs of some queues are.

    Valkey lists them. RabbitMQ lists nothing while workers consume; there it is known only when nothing waits and
    nothing is unacknowledged, which the management interface tells.
    """

    def __init__(self, app: Celery, queues: Sequence[str], *, management_url: str | None) -> None:
        """Take an application.

        Args:
            app: Whose broker.
            queues: Queues of its lanes.
            management_url: RabbitMQ's management interface; None for none.
        """
        self._queues = list(queues)
        self._gauge = open_gauge(app, management_url=management_url)
        lists = connect(app).kind is BrokerKind.VALKEY
        self._messages: Messages | None = open_messages(app) if lists else None

    def placed(self) -> frozenset[str] | None:
        """Return the ids of all that wait in the queues or are in workers' hands; None where nobody can tell.

        Raises:
            BrokerUnavailable: The broker does not answer.
        """
        readings = self._gauge.read(self._queues)
        if _is_empty(readings):
            return frozenset()
        if self._messages is None or sum(one.ready or 0 for one in readings.values()) > LISTED:
            return None
        # In this order: on its way from a queue into somebody's hands it is seen in one of them.
        waiting = self._messages.waiting(self._queues)
        unacknowledged = self._messages.unacknowledged()
        return None if unacknowledged is None else unacknowledged | waiting.keys()

    def close(self) -> None:
        """Close its connections."""
        self._gauge.close()
        if self._messages is not None:
            self._messages.close()


def _is_empty(readings: Mapping[str, QueueReading]) -> bool:
    return all(one.ready == 0 and one.unacked == 0 for one in readings.values())

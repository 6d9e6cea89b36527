"""Draining RabbitMQ's own dead letters: what it has taken out of the lanes' queues, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import kombu
from celery import Celery

from slackwater.adapters.brokers.connection import ANSWER_WITHIN, BrokerKind, connect
from slackwater.adapters.brokers.queues import DEAD_LETTERS, dead_letter_queue
from slackwater.core.message import Message, fresh, kept_properties

BATCH = 200


@dataclass(frozen=True, kw_only=True)
class BrokerLetter:
    """A message that RabbitMQ has taken out of a queue.

    Attributes:
        message: All of it, as it could be published to its queue again.
        reason: `expired`, `rejected`, `delivery_limit` or `maxlen`; `unknown` where the broker wrote none.
    """

    message: Message
    reason: str


class Drain:
    """Takes dead letters from RabbitMQ; on Valkey there are none. For one thread at a time."""

    def __init__(self, app: Celery, *, prefix: str, answer_within: timedelta = ANSWER_WITHIN) -> None:
        """Prepare; it connects when it drains.

        Args:
            app: Whose broker.
            prefix: The environment's.
            answer_within: How long the broker may take to connect, and to answer.
        """
        self._connection = connect(app, answer_within=answer_within)
        self._queue = dead_letter_queue(f"{prefix}{DEAD_LETTERS}")

    def drain(self, handle: Callable[[BrokerLetter], None], *, limit: int = BATCH) -> int:
        """Hand over what is there now, at most `limit`; return how many.

        A letter is acknowledged after the function has returned. If it raises, or this process dies, the letter comes
        again: at least once, so the function must be safe to repeat for a job.

        Raises:
            BrokerUnavailable: The broker does not answer.
        """
        if self._connection.kind is not BrokerKind.RABBITMQ:
            return 0
        return self._connection.ask(lambda opened: self._drain(opened, handle, limit))

    def close(self) -> None:
        """Close its connection."""
        self._connection.close()

    def _drain(self, opened: kombu.Connection, handle: Callable[[BrokerLetter], None], limit: int) -> int:
        channel: Any = opened.channel()
        try:
            self._queue(channel).declare()
            for count in range(limit):
                raw = channel.basic_get(self._queue.name, no_ack=False)
                if raw is None:
                    return count
                handle(letter_of(raw))
                channel.basic_ack(raw.delivery_tag)
            return limit
        finally:
            channel.close()  # and what was not acknowledged goes back


def letter_of(raw: Any) -> BrokerLetter:
    """Read a letter from a message of py-amqp."""
    properties = dict(raw.properties)
    headers = dict(properties.get("application_headers") or {})
    death = _latest(headers.get("x-death"))
    body = raw.body.encode(raw.content_encoding or "utf-8") if isinstance(raw.body, str) else bytes(raw.body)
    message = Message(
        # A foreign message may have no id; the same one must get the same id each time that it comes.
        job=str(headers.get("id") or properties.get("correlation_id") or uuid5(NAMESPACE_OID, body.hex())),
        task=str(headers.get("task") or ""),
        queue=str(death.get("queue") or headers.get("x-first-death-queue") or ""),
        headers=fresh(headers),
        body=body,
        content_type=str(properties.get("content_type") or "application/data"),
        content_encoding=str(properties.get("content_encoding") or "binary"),
        properties=kept_properties(properties),
    )
    return BrokerLetter(message=message, reason=str(death.get("reason") or "unknown"))


def _latest(deaths: object) -> Mapping[str, Any]:
    latest = deaths[0] if isinstance(deaths, list) and deaths else None
    return latest if isinstance(latest, Mapping) else {}

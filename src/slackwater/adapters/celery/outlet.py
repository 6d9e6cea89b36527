"""The outlet: publishes stored messages as they are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from celery import Celery
from kombu.exceptions import OperationalError

from slackwater.core.message import Message
from slackwater.errors import BrokerUnavailable


@dataclass(frozen=True)
class Outlet:
    """Publishes stored messages, at least once under their own ids."""

    app: Celery

    def publish(self, messages: Sequence[Message]) -> None:
        """Publish, in a batch where the transport can.

        Raises:
            BrokerUnavailable: Not all were confirmed; each may have been sent.
        """
        try:
            with self.app.producer_or_acquire() as producer:
                batch = producer.batch(len(messages)) if producer.supports_batch_publish else nullcontext()
                with producer.connection._reraise_as_library_errors(), batch:
                    for message in messages:
                        self._publish(producer, message)
        except (OperationalError, OSError) as error:
            raise BrokerUnavailable(
                f"{len(messages)} jobs were not confirmed ({error}); they stay in the store and are published again",
                outcome_unknown=True,
            ) from error

    def _publish(self, producer: Any, message: Message) -> None:
        queue = self.app.amqp.queues[message.queue]
        producer.publish(
            message.body,
            exchange="",
            routing_key=message.queue,
            headers=dict(message.headers),
            content_type=message.content_type,
            content_encoding=message.content_encoding,
            declare=[queue],
            retry=True,
            **message.properties,
        )

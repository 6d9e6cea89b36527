"""The outlet: publishes stored messages word for word."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import kombu
from celery import Celery
from kombu.exceptions import BatchPublishError  # type: ignore[attr-defined]  # newer than its stubs

from slackwater.adapters.brokers.connection import ANSWER_WITHIN, BrokerKind, connect
from slackwater.core.message import Message, fresh
from slackwater.errors import BrokerUnavailable


class Outlet:
    """Publishes messages to their queues: headers, body and properties as they are stored.

    Left out is what a broker wrote about earlier deliveries, and an expiration: a released job is judged by its
    `start_by`. For one thread at a time.
    """

    def __init__(self, app: Celery, *, answer_within: timedelta = ANSWER_WITHIN) -> None:
        """Prepare; it connects when it publishes.

        Args:
            app: Whose broker, and whose queues are declared where they are missing.
            answer_within: How long the broker may take to connect, and to confirm a batch.
        """
        self._app = app
        self._within_s = answer_within.total_seconds()
        self._connection = connect(app, answer_within=answer_within, to_write=True)
        self._batched = self._connection.kind is BrokerKind.VALKEY

    def publish(self, messages: Sequence[Message]) -> None:
        """Publish a batch; returns when the broker has confirmed all of it.

        At least once: after an error some may have been published, and to repeat is safe for whoever guards by id.

        Raises:
            BrokerUnavailable: Not confirmed; `outcome_unknown` is set.
        """
        if not messages:
            return
        send = self._send_batched if self._batched else self._send_confirmed
        try:
            self._connection.ask(lambda opened: send(opened, messages))
        except BrokerUnavailable as error:
            raise BrokerUnavailable(f"{len(messages)} messages not confirmed: {error}", outcome_unknown=True) from error

    def close(self) -> None:
        """Close its connection."""
        self._connection.close()

    def _send_batched(self, opened: kombu.Connection, messages: Sequence[Message]) -> None:
        producer: Any = kombu.Producer(opened)
        try:
            with producer.batch(2 * len(messages)):
                for message in messages:
                    self._send(producer, message)
        except BatchPublishError as error:
            # No connection error to kombu, whose reason is one: a connection that had died is to be opened again.
            raise error.__cause__ or error from error

    def _send_confirmed(self, opened: kombu.Connection, messages: Sequence[Message]) -> None:
        """Publish all, then wait for the confirmations together: one by one each costs a round trip and a sync."""
        channel: Any = opened.channel()
        try:
            confirms = _Confirms(channel)
            producer: Any = kombu.Producer(channel)
            for message in messages:
                self._send(producer, message)
            confirms.wait(opened, count=len(messages), within_s=self._within_s)
        finally:
            channel.close()

    def _send(self, producer: Any, message: Message) -> None:
        queue = self._queues.get(message.queue)
        producer.publish(
            message.body,
            exchange="",
            routing_key=message.queue,
            declare=[] if queue is None else [queue],
            headers=fresh(message.headers),
            content_type=message.content_type,
            content_encoding=message.content_encoding,
            **{"priority": None, **message.properties},
        )

    @property
    def _queues(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._app.amqp.queues
        return found


class _Confirms:
    """Counts a channel's confirmations (publisher confirms), several publishes under way at once."""

    def __init__(self, channel: Any) -> None:
        self._open: set[int] = set()
        self._sent = 0
        self._refused = 0
        channel.confirm_select()
        publish = channel._basic_publish  # the one that does not wait, whatever `confirm_publish` says

        def count(*args: Any, **options: Any) -> Any:
            options.pop("confirm_timeout", None)
            self._sent += 1
            self._open.add(self._sent)
            return publish(*args, **options)

        channel.basic_publish = count
        channel.events["basic_ack"].add(self._acked)
        channel.events["basic_nack"].add(self._nacked)

    def wait(self, opened: kombu.Connection, *, count: int, within_s: float) -> None:
        """Wait for all; silence is an error of the transport's own kind."""
        until = time.monotonic() + within_s
        while self._open:
            opened.drain_events(timeout=max(0.01, until - time.monotonic()))
        if self._refused:
            raise BrokerUnavailable(f"the broker refused {self._refused} of {count}; a queue is full")

    def _acked(self, tag: int, multiple: bool) -> None:
        self._open -= {each for each in self._open if each <= tag} if multiple else {tag}

    def _nacked(self, tag: int, multiple: bool) -> None:
        before = len(self._open)
        self._acked(tag, multiple)
        self._refused += before - len(self._open)

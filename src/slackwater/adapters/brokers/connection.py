"""A connection to the application's broker, for asking it things.

Kombu makes the connection, so that every address and option which the workers understand is understood here.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

import kombu
from celery import Celery

from slackwater.errors import BrokerUnavailable, ConfigurationError

Answer = TypeVar("Answer")

ANSWER_WITHIN = timedelta(seconds=3)
"""How long a broker may take to connect, and to answer, before it counts as unavailable."""


class BrokerKind(StrEnum):
    """The brokers that can be read; the values are kombu's driver types."""

    VALKEY = "redis"
    RABBITMQ = "amqp"


class BrokerConnection:
    """One connection, opened when it is first needed and dropped when it fails. For one thread at a time.

    Attributes:
        kind: Which broker it is.
        where: The broker's address, password masked.
    """

    def __init__(self, connection: kombu.Connection) -> None:
        """Take a connection as a template (it is not opened itself).

        Raises:
            ConfigurationError: A transport that cannot be read.
        """
        self.kind = _kind(connection)
        self.where = connection.as_uri()
        self._template = connection
        self._opened: kombu.Connection | None = None
        transport = connection.transport
        # Kombu counts KeyError among the connection errors of Redis; here it would be a mistake of ours.
        failures = (*transport.connection_errors, *transport.channel_errors)
        self._failures = tuple(one for one in failures if one is not KeyError)

    def ask(self, question: Callable[[kombu.Connection], Answer]) -> Answer:
        """Put a question to the broker; asked twice where a connection that was open before turns out to be dead.

        Raises:
            BrokerUnavailable: It does not answer, or refuses; the next question goes over a new connection.
            ConfigurationError: Its address or options cannot be.
        """
        was_open = self._opened is not None
        try:
            return question(self._open())
        except self._failures as error:
            self.close()
            if was_open:
                return self.ask(question)
            raise BrokerUnavailable(_sentence(self.where, error)) from error

    def close(self) -> None:
        """Close the connection, if it is open; a later question opens another."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.release()

    def _open(self) -> kombu.Connection:
        if self._opened is None:
            connection = self._template.clone()
            others = max(len(connection.alt) - 1, 0)
            try:
                connection.ensure_connection(
                    max_retries=others,
                    interval_start=0,
                    interval_step=0,
                    interval_max=0,
                    reraise_as_library_errors=False,
                )
            except ValueError as error:  # a database that is no number, a sentinel's master without a name
                raise ConfigurationError(f"setting broker_url or broker_transport_options: {error}") from error
            self._opened = connection
        return self._opened


def connect(app: Celery, *, answer_within: timedelta = ANSWER_WITHIN, to_write: bool = False) -> BrokerConnection:
    """Prepare a connection to the broker that an application's workers read from; nothing is opened yet.

    Args:
        app: The application; its own time limits in `broker_transport_options` go before `answer_within`.
        answer_within: How long the broker may take to connect, and to answer.
        to_write: To the broker that the application publishes to instead, where that is another.

    Raises:
        ConfigurationError: A transport that cannot be read.
    """
    seconds = answer_within.total_seconds()
    try:
        made = app.connection_for_write if to_write else app.connection_for_read
        kind = _kind(made())
    except (KeyError, ImportError) as error:
        raise ConfigurationError(_unsupported(str(app.conf.broker_read_url), str(error.args[0]))) from error
    names = {
        BrokerKind.VALKEY: ("socket_timeout", "socket_connect_timeout"),
        BrokerKind.RABBITMQ: ("read_timeout", "write_timeout"),
    }[kind]
    given = app.conf.broker_transport_options or {}
    limits: dict[str, Any] = {name: seconds for name in names if given.get(name) is None}
    return BrokerConnection(made(connect_timeout=seconds, transport_options=limits))


def _kind(connection: kombu.Connection) -> BrokerKind:
    driver = connection.transport.driver_type
    try:
        return BrokerKind(driver)
    except ValueError as error:
        raise ConfigurationError(_unsupported(connection.as_uri(), f"its transport is {driver!r}")) from error


def _unsupported(url: str, why: str) -> str:
    scheme = url.split("://", maxsplit=1)[0]
    return (
        f"setting broker_url: the queues of a {scheme}:// broker cannot be read ({why}); "
        "use redis://, rediss://, redis+socket://, sentinel://, amqp:// or amqps://"
    )


def _sentence(where: str, error: BaseException) -> str:
    said = " ".join(str(error).split()) or type(error).__name__
    return f"broker {where} cannot be read: {said[:200].rstrip('.')}; see that it runs and that broker_url names it"

"""Choosing the recovery for an application's broker."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from celery import Celery

from slackwater.adapters.brokers.connection import ANSWER_WITHIN, BrokerKind, connect
from slackwater.adapters.brokers.valkey_recovery import ValkeyRecovery
from slackwater.core.liveness import Owner
from slackwater.ports import Recovery


class BrokersOwn:
    """The recovery of RabbitMQ: what a connection held goes back when it ends, by the broker itself."""

    def enter(self, owner: Owner) -> None:
        """Do nothing; the broker knows its connections."""

    def owners(self) -> Mapping[Owner, int]:
        """Return none."""
        return {}

    def connections(self, owner: Owner) -> int | None:  # noqa: ARG002 - the port's signature
        """Return None: over AMQP nobody can ask."""
        return None

    def restore(self, owner: Owner) -> int:  # noqa: ARG002
        """Return 0: nothing is left to put back."""
        return 0

    def forget(self, owner: Owner) -> bool:  # noqa: ARG002
        """Return True: nothing is kept."""
        return True

    def close(self) -> None:
        """Nothing is open."""


def open_recovery(app: Celery, *, realm: str, answer_within: timedelta = ANSWER_WITHIN) -> Recovery:
    """Return the recovery for the broker that the application's workers read from; it connects when it is asked.

    Args:
        app: The application.
        realm: Whose workers sweep for each other; see `unacked.entry_of`.
        answer_within: How long the broker may take to connect, and to answer, before it counts as unavailable.

    Raises:
        ConfigurationError: A broker that cannot be asked.
    """
    connection = connect(app, answer_within=answer_within)
    return ValkeyRecovery(connection, realm=realm) if connection.kind is BrokerKind.VALKEY else BrokersOwn()

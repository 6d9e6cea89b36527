"""Choosing the recovery for an application's broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from celery import Celery

from slackwater.adapters.brokers.connection import ANSWER_WITHIN, BrokerKind, connect
from slackwater.adapters.brokers.valkey_recovery import ValkeyRecovery
from slackwater.core.liveness import Owner


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

    def delivered(self, owner: Owner) -> Sequence[str]:  # noqa: ARG002
        """Return none: nobody but the broker can tell."""
        return ()

    def jobs_of(self, owner: Owner, tags: Sequence[str]) -> Mapping[str, tuple[str, int]]:  # noqa: ARG002
        """Return none."""
        return {}

    def restore_these(self, owner: Owner, tags: Sequence[str]) -> int:  # noqa: ARG002
        """Return 0: what a connection held went back with it."""
        return 0

    def forget(self, owner: Owner) -> bool:  # noqa: ARG002
        """Return True: nothing is kept."""
        return True

    def close(self) -> None:
        """Nothing is open."""


def open_recovery(app: Celery, *, realm: str, answer_within: timedelta = ANSWER_WITHIN) -> ValkeyRecovery | BrokersOwn:
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

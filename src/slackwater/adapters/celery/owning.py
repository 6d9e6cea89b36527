"""A worker process as an owner: what it takes from Valkey lies under names of its own (see `brokers.unacked`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from celery import Celery, bootsteps

from slackwater.adapters.brokers.unacked import transport_options_of
from slackwater.adapters.brokers.valkey_recovery import enter
from slackwater.adapters.celery.configuration import is_redis
from slackwater.core.liveness import Owner


def own(app: Celery, owner: Owner) -> None:
    """Have all broker connections that this process opens from now on be this owner's; nothing on RabbitMQ.

    A visibility timeout of the application's own is put out of force: no message of a living worker comes back.
    """
    if is_redis(app):
        given = app.conf.broker_transport_options or {}
        app.conf.broker_transport_options = {**given, **transport_options_of(owner)}


def enter_at_each_connection(app: Celery, *, owner_of: Callable[[], Owner | None], realm: str) -> None:
    """Have a worker write its owner into the registry at each connection, before it takes a message.

    At each, since a broker may come back empty, or as it was some seconds ago.

    Args:
        app: The application.
        owner_of: The owner that this process is; None for none.
        realm: See `unacked.entry_of`.
    """

    class EnterRegistry(bootsteps.StartStopStep):
        """Runs after the connection is made, and before the event loop consumes."""

        requires = ("celery.worker.consumer:Connection",)

        def start(self, parent: Any) -> None:
            owner = owner_of()
            if owner is not None and is_redis(app):
                enter(parent.connection, owner, realm=realm)

    app.steps["consumer"].add(EnterRegistry)

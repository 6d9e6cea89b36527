"""A worker process as an owner: what it takes from Valkey lies under names of its own (see `brokers.unacked`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from celery import Celery, bootsteps

from slackwater.adapters.brokers.unacked import keys_of, transport_options_of
from slackwater.adapters.brokers.valkey_recovery import enter
from slackwater.adapters.celery.configuration import is_redis
from slackwater.adapters.celery.taking import outlive
from slackwater.core.liveness import Owner

_PATIENT = {
    "result_backend_always_retry": True,
    "result_backend_base_sleep_between_retries_ms": 250,
    "result_backend_max_sleep_between_retries_ms": 2_000,
}


def own(app: Celery, owner: Owner) -> None:
    """Have all broker connections that this process opens from now on be this owner's; nothing on RabbitMQ.

    A visibility timeout of the application's own is put out of force: no message of a living worker comes back.
    """
    if is_redis(app):
        given = app.conf.broker_transport_options or {}
        app.conf.broker_transport_options = {**given, **transport_options_of(owner)}


def wait_for_results(app: Celery) -> None:
    """Have this worker's bodies wait, in their slots, for a result backend that is away; settings of its own stay.

    By itself Celery gives up at once, outside of the body: a job whose work is done is then told as failed, and where
    that cannot be told either it is never told at all, and its message stays in the worker's hands.

    In workers alone: who asks for a result elsewhere is to be told that nobody answers.
    """
    for setting, value in _PATIENT.items():
        if not app.conf.value_set_for(setting):
            app.conf[setting] = value
    made: Any = app.backend  # by this thread, if at all; those of others will read the settings
    made.always_retry = app.conf.result_backend_always_retry
    made.base_sleep_between_retries_ms = app.conf.result_backend_base_sleep_between_retries_ms
    made.max_sleep_between_retries_ms = app.conf.result_backend_max_sleep_between_retries_ms


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
                channel = parent.connection.default_channel
                outlive(channel, transit=keys_of(owner).transit, latest=lambda: _latest(parent))

    app.steps["consumer"].add(EnterRegistry)


def _latest(consumer: Any) -> Any:
    tasks = None if consumer.connection is None else consumer.task_consumer
    return None if tasks is None else tasks.channel

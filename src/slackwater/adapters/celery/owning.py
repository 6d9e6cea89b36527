"""A worker process as an owner: what it takes from Valkey lies under names of its own (see `brokers.unacked`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redis
from celery import Celery, bootsteps
from kombu.transport.redis import QoS

from slackwater.adapters.brokers.unacked import transport_options_of
from slackwater.adapters.brokers.valkey_recovery import enter
from slackwater.adapters.celery.configuration import is_redis
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
                outlive(parent.connection.default_channel, latest=lambda: _latest(parent))

    app.steps["consumer"].add(EnterRegistry)


class OwnersQoS(QoS):
    """What kombu keeps of a channel's deliveries, for a worker that owns what it takes: they outlive the channel.

    Kombu's own puts all back when a connection breaks, also what still runs: two bodies of one job. And it cannot
    acknowledge over a channel that is closed, which ends the worker. What really is left behind is found by `hands`,
    and at the worker's end by `worker_life`.
    """

    restore_at_shutdown = False
    latest: Callable[[], Any]

    def ack(self, delivery_tag: str) -> None:
        """Acknowledge, over the latest channel if this one is closed."""
        if self.channel.closed:
            self._open()._remove_from_indices(delivery_tag).execute()
        else:
            super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:  # kombu's signature
        """Reject, over the latest channel if this one is closed."""
        if not self.channel.closed:
            super().reject(delivery_tag, requeue=requeue)
        elif requeue:
            self._open().restore_by_tag(delivery_tag, leftmost=True)
        else:
            self._open()._remove_from_indices(delivery_tag).execute()

    def _open(self) -> Any:
        channel = self.latest()
        if channel is None or channel.closed:
            raise redis.ConnectionError("the connection is lost and there is no other yet")
        return channel.qos


def outlive(channel: Any, *, latest: Callable[[], Any]) -> None:
    """Have a channel's deliveries outlive it.

    Args:
        channel: Of kombu's Redis transport.
        latest: Returns the channel that the worker consumes over now; None for none.
    """
    # Swapped, as the worker may have set its prefetch already.
    channel.qos.__class__ = OwnersQoS
    channel.qos.latest = latest


def _latest(consumer: Any) -> Any:
    tasks = None if consumer.connection is None else consumer.task_consumer
    return None if tasks is None else tasks.channel

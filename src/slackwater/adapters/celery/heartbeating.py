"""Heartbeats to RabbitMQ: a worker that stands still keeps what it was delivered until its connection ends.

Nobody but the broker can end it. It does so after two to three heartbeats without a byte (AMQP's heartbeat; RabbitMQ
looks once each, and forgives one), so Celery's own, of two minutes, keeps the jobs of a stopped worker for up to six.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from threading import Event, Thread
from typing import Any

from celery import Celery, bootsteps
from celery.concurrency.solo import TaskPool as SoloPool

from slackwater.adapters.celery.configuration import is_redis

SETTING = "broker_heartbeat"
LEAST_S = 5
"""RabbitMQ's own advice: with less, a busy process is taken for a dead one."""
RATE = 3
"""Heartbeats that are sent in the time of one; Celery's own rate."""
_MISSED = 3


def heartbeat_s(within: timedelta) -> int:
    """Return the heartbeat, in seconds, by which RabbitMQ gives up a worker within a time that it stood still.

    Args:
        within: The time; what is less than `_MISSED * LEAST_S` seconds counts as that.
    """
    return max(LEAST_S, int(within.total_seconds() / _MISSED))


def note_on_heartbeat(app: Celery, *, within: timedelta) -> list[str]:
    """Say it where the application's own heartbeat lets a stopped worker keep its jobs for longer."""
    if is_redis(app) or not app.conf.value_set_for(SETTING):
        return []
    given_s = int(app.conf[SETTING] or 0)
    if 0 < given_s <= heartbeat_s(within):
        return []
    kept = f"for up to {_MISSED * given_s} s" if given_s else "until its connection ends"
    return [
        f"setting {SETTING} = {given_s}: RabbitMQ leaves a worker that stands still its jobs {kept}; remove the line "
        f"to have them back within {_MISSED * heartbeat_s(within)} s"
    ]


def beat_often(app: Celery, *, within: timedelta) -> None:
    """Have this application's workers send heartbeats that let RabbitMQ find a stopped one within a time.

    A heartbeat of the application's own stays. So does Celery's on a pool whose bodies run in the loop that sends it
    (solo: it would be cut off in the midst of a long body), and with gevent, where each look for heartbeats holds up
    the loop.
    """

    class BeatOften(bootsteps.Step):
        """Sets the consumer's heartbeat before it connects."""

        def create(self, parent: Any) -> None:
            own_loop = not isinstance(parent.pool, SoloPool) and not parent.pool.is_green
            if own_loop and parent.amqheartbeat and not is_redis(app) and not app.conf.value_set_for(SETTING):
                parent.amqheartbeat = heartbeat_s(within)

    app.steps["consumer"].add(BeatOften)


@contextmanager
def beating(consumer: Any) -> Iterator[None]:
    """Go on sending a worker's heartbeats from a thread, while Celery's loop stands still.

    It does so at a soft shutdown, and where a pool of threads finishes its bodies: a broker that hears nothing would
    deliver their jobs again, beside them. Celery itself does it for a prefork pool; the driver's writes have a lock.

    Args:
        consumer: Celery's, whose connection holds the deliveries.
    """
    connection: Any = getattr(consumer, "connection", None)
    interval_s = _interval_s(connection)
    if not interval_s:
        yield
        return
    ended = Event()

    def beat() -> None:
        while not ended.wait(interval_s / RATE):
            # It sends before it finds that it has heard nothing itself, as nobody reads now; a lost one stays lost.
            with suppress(*connection.connection_errors):
                connection.heartbeat_check(RATE)

    thread = Thread(target=beat, name="slackwater-heartbeats", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _interval_s(connection: Any) -> float:
    """Return the heartbeat that was agreed with the broker, in seconds; 0 for none, and without a connection."""
    if connection is None or not connection.connected or not connection.supports_heartbeats:
        return 0.0
    return float(connection.get_heartbeat_interval() or 0)

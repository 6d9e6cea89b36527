"""Heartbeats by which RabbitMQ finds a worker that stands still."""

from __future__ import annotations

from datetime import timedelta
from threading import Event, active_count
from types import SimpleNamespace
from typing import Any

import pytest
from amqp.exceptions import ConnectionForced
from celery import Celery
from celery.concurrency.solo import TaskPool as SoloPool
from celery.concurrency.thread import TaskPool as ThreadPool

from slackwater.adapters.celery.heartbeating import beat_often, beating, heartbeat_s, note_on_heartbeat
from slackwater.adapters.celery.leaving import Leaving

WITHIN = timedelta(seconds=35)


class Connection:
    """A connection to a broker whose heartbeats are quick."""

    connected = supports_heartbeats = True
    connection_errors = (ConnectionForced,)

    def __init__(self, interval_s: float = 0.01) -> None:
        self.interval_s = interval_s
        self.beats = 0
        self.beaten_often = Event()

    def get_heartbeat_interval(self) -> float:
        return self.interval_s

    def heartbeat_check(self, rate: int) -> None:
        self.beats += 1
        if self.beats >= 3:
            self.beaten_often.set()
        raise ConnectionForced("Too many heartbeats missed")


def application(broker: str = "amqp://", **settings: Any) -> Celery:
    app = Celery("app", broker=broker, set_as_current=False)
    app.conf.update(settings)
    return app


def heartbeat_of(app: Celery, pool: Any, celerys: int = 120) -> int:
    """Return a worker's heartbeat once its consumer's steps are made."""
    parent = SimpleNamespace(pool=pool, amqheartbeat=celerys)
    beat_often(app, within=WITHIN)
    for step in app.steps["consumer"]:
        step(parent).include(parent)
    return int(parent.amqheartbeat)


def test_three_heartbeats_fit_into_the_time_and_none_is_less_than_five_seconds() -> None:
    assert heartbeat_s(WITHIN) == 11
    assert heartbeat_s(timedelta(seconds=60)) == 20
    assert heartbeat_s(timedelta(seconds=5)) == 5


def test_a_worker_on_rabbitmq_beats_often() -> None:
    assert heartbeat_of(application(), ThreadPool(limit=1)) == 11


@pytest.mark.parametrize(
    ("app", "pool", "celerys"),
    [
        (application("redis://"), ThreadPool(limit=1), 120),
        (application(broker_heartbeat=60), ThreadPool(limit=1), 60),
        (application(), SoloPool(), 120),
        (application(), SimpleNamespace(is_green=True), 120),
        (application(), ThreadPool(limit=1), 0),
    ],
    ids=["on valkey", "set by the application", "solo", "gevent", "none that Celery would send"],
)
def test_elsewhere_the_heartbeat_stays_as_it_is(app: Celery, pool: Any, celerys: int) -> None:
    assert heartbeat_of(app, pool, celerys) == celerys


def test_a_heartbeat_that_is_slower_or_off_is_noted_and_a_quicker_one_is_not() -> None:
    slow, off = (note_on_heartbeat(application(broker_heartbeat=given), within=WITHIN) for given in (60, 0))
    assert slow == [
        "setting broker_heartbeat = 60: RabbitMQ leaves a worker that stands still its jobs for up to 180 s; remove "
        "the line to have them back within 33 s"
    ]
    assert "until its connection ends" in off[0]
    for app in (application(broker_heartbeat=5), application(), application("redis://", broker_heartbeat=60)):
        assert note_on_heartbeat(app, within=WITHIN) == []


def test_while_the_loop_stands_still_a_thread_beats_whatever_the_broker_says() -> None:
    connection, before = Connection(), active_count()
    with beating(SimpleNamespace(connection=connection)):
        assert connection.beaten_often.wait(30)
    assert active_count() == before


@pytest.mark.parametrize("connection", [None, Connection(interval_s=0)])
def test_without_a_heartbeat_nothing_is_sent(connection: Connection | None) -> None:
    before = active_count()
    with beating(SimpleNamespace(connection=connection)):
        assert active_count() == before


def test_a_pool_of_threads_that_finishes_its_bodies_goes_on_beating() -> None:
    connection, pool = Connection(), ThreadPool(limit=1)
    leaving = Leaving(hand_back=lambda _: None, farewell=lambda: None)
    leaving.follow_pool(pool, consumer=SimpleNamespace(connection=connection))
    body: Any = pool
    finished = body.executor.submit(connection.beaten_often.wait, 30)

    pool.stop()

    assert finished.result() is True


def test_a_soft_shutdown_goes_on_beating() -> None:
    connection = Connection()
    waited: list[bool] = []
    worker = SimpleNamespace(
        consumer=SimpleNamespace(connection=connection),
        terminate=lambda: None,
        wait_for_soft_shutdown=lambda: waited.append(connection.beaten_often.wait(30)),
    )
    Leaving(hand_back=lambda _: None, farewell=lambda: None).follow(worker)

    worker.wait_for_soft_shutdown()

    assert waited == [True]

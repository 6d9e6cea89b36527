"""Losing messages as brokers do, and sweeping beside a test as the balancer does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

import redis
from tests.integration.cases.ward import Ward
from tests.integration.celery.spine import eventually

from slackwater.adapters.brokers.recovery import open_recovery
from slackwater.adapters.brokers.unacked import keys_of
from slackwater.core.sweep import Sweep
from slackwater.engine.sweeping import Sweeper

EVERY_S = 0.2


def lose_what_was_delivered(ward: Ward, lane: str) -> None:
    """Take away the message that a dead worker had, before anybody can put it back: no copy of it is left."""
    if not ward.place.broker_url.startswith("redis"):
        eventually(lambda: ward.queue(lane).ready == 1)
        lose_what_waits(ward, lane)
        return
    recovery = open_recovery(ward.sw.app, realm=ward.sw.realm)
    [(owner, count)] = recovery.owners().items()
    recovery.close()
    assert count == 1
    with redis.Redis.from_url(ward.place.broker_url) as client:
        client.delete(keys_of(owner).messages)


def lose_what_waits(ward: Ward, lane: str) -> None:
    """Empty a lane's queue."""
    with ward.sw.app.connection_for_write() as connection:
        channel: Any = connection.default_channel
        channel.queue_purge(ward.sw.queues[lane])
    eventually(lambda: ward.queue(lane).ready == 0)


@dataclass
class Swept:
    """What a sweeper did while a test went on."""

    rounds: list[Sweep] = field(default_factory=list)

    @property
    def found(self) -> int:
        return sum(one.found_count for one in self.rounds)


@contextmanager
def sweeping(sweeper: Sweeper) -> Iterator[Swept]:
    """Sweep again and again until the block ends."""
    stop, swept = Event(), Swept()

    def sweep() -> None:
        while not stop.wait(EVERY_S):
            swept.rounds.append(sweeper.sweep())

    thread = Thread(target=sweep)
    thread.start()
    try:
        yield swept
    finally:
        stop.set()
        thread.join()

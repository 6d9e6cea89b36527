"""A message is always somewhere: in its list, or in a worker's hands, also where that worker stands still just then."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import psutil  # type: ignore[import-untyped]
import pytest
import redis
from tests.integration.cases.ward import Ward, lanes
from tests.integration.celery.spine import eventually
from tests.programs import Program

from slackwater.adapters.brokers.unacked import keys_of
from slackwater.core.liveness import Owner
from slackwater.inspection import open_messages
from slackwater.testing import FaultProxy

pytestmark = pytest.mark.parametrize("broker_url", ["valkey"], indirect=True)


@contextmanager
def standing_still(worker: Program) -> Iterator[None]:
    """Stop a worker's processes; they go on afterwards if they are still there."""
    tree = [psutil.Process(worker.pid), *psutil.Process(worker.pid).children(recursive=True)]
    for each in tree:
        each.suspend()
    yield
    for each in tree:
        if each.is_running():
            each.resume()


def unacknowledged(ward: Ward) -> frozenset[str]:
    messages = open_messages(ward.sw.app)
    try:
        return messages.unacknowledged() or frozenset()
    finally:
        messages.close()


def waiting(ward: Ward, lane: str) -> set[str]:
    messages = open_messages(ward.sw.app)
    try:
        return set(messages.waiting([ward.sw.queues[lane]]))
    finally:
        messages.close()


@lanes
def test_what_was_published_while_the_only_worker_stood_still_survives_its_death(ward: Ward, lane: str) -> None:
    with ward.worker("one", lane=lane) as one:
        ward.done(ward.tasks[f"{lane}.note"].delay(0).id)
        with standing_still(one):
            jobs = [ward.tasks[f"{lane}.note"].delay(number).id for number in range(3)]
            assert waiting(ward, lane) | unacknowledged(ward) == set(jobs)
            for each in psutil.Process(one.pid).children(recursive=True):
                each.kill()
            one.kill()
            one.wait()
    with ward.worker("two", lane=lane):
        ward.done(*jobs)
    assert [len(ward.runs(job)) for job in jobs] == [1, 1, 1]


@lanes
def test_what_was_taken_over_a_connection_that_then_broke_is_run_once(ward: Ward, link: FaultProxy, lane: str) -> None:
    with ward.worker("one", lane=lane, SPINE_BROKER_URL=link.url_of(ward.place.broker_url)):
        ward.done(ward.tasks[f"{lane}.note"].delay(0).id)
        for number in range(5):
            link.stall()
            job = ward.tasks[f"{lane}.note"].delay(number).id
            link.drop()  # also the answer that may have been on its way
            link.flow()
            ward.done(job)
            assert len(ward.runs(job)) == 1


def test_what_is_in_transit_of_a_dead_worker_goes_back_as_it_was(ward: Ward) -> None:
    with ward.worker("one") as one:
        [presence] = ward.sw.store.presence.all()
        os.kill(one.pid, signal.SIGKILL)
        one.wait()
    job = ward.tasks["heavy.note"].delay(1).id
    queue, keys = ward.sw.queues["heavy"], keys_of(Owner(worker=presence.worker, boot=presence.boot))
    with redis.Redis.from_url(ward.place.broker_url) as client:
        # As a worker leaves it that dies between the two steps.
        client.hset(keys.transit, queue, client.rpop(queue))
    assert unacknowledged(ward) == {job}
    with ward.worker("two"):
        ward.done(job)
    assert [run["redelivered"] for run in ward.runs(job)] == [False], "it was never begun"
    with redis.Redis.from_url(ward.place.broker_url) as client:
        eventually(lambda: not client.exists(keys.transit))


def test_a_message_that_nobody_can_read_is_dropped_and_the_next_one_runs(ward: Ward) -> None:
    with ward.worker("one"):
        with redis.Redis.from_url(ward.place.broker_url) as client:
            client.lpush(ward.sw.queues["heavy"], "no message of kombu's")
        with ward.worker("two"):
            ward.done(ward.tasks["heavy.note"].delay(1).id)


@pytest.mark.parametrize("priority", [0, 3, 9])
def test_a_message_of_any_priority_is_taken(ward: Ward, priority: int) -> None:
    with ward.worker("one", lane="waiting"):
        ward.done(ward.tasks["waiting.note"].apply_async((1,), priority=priority).id)

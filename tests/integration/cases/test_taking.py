"""A message is always somewhere: in its list, or in a worker's hands, also where that worker stands still just then."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import psutil  # type: ignore[import-untyped]
import pytest
import redis
from tests.integration.cases.ward import Ward, lanes, pairs
from tests.integration.celery.spine import eventually
from tests.programs import Program

from slackwater.adapters.brokers.unacked import keys_of
from slackwater.core.liveness import Owner
from slackwater.inspection import open_messages
from slackwater.testing import FaultProxy

VALKEY = pytest.mark.parametrize("broker_url", ["valkey"], indirect=True)
AGAIN_WITHIN_S = 45
"""Three times what is promised of the messages of a dead worker, and its lease's life."""


@contextmanager
def standing_still(worker: Program) -> Iterator[None]:
    """Stop a worker's processes; they go on afterwards if they are still there."""
    stopped = tree(worker)
    for each in stopped:
        each.suspend()
    try:
        yield
    finally:
        for each in stopped:
            if each.is_running():
                each.resume()


def tree(worker: Program) -> list[psutil.Process]:
    first = psutil.Process(worker.pid)
    return [first, *first.children(recursive=True)]


def kill(worker: Program) -> None:
    for each in reversed(tree(worker)):
        each.kill()
    worker.wait()


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


@VALKEY
@lanes
def test_what_was_published_while_the_only_worker_stood_still_survives_its_death(ward: Ward, lane: str) -> None:
    with ward.worker("one", lane=lane) as one:
        ward.done(ward.tasks[f"{lane}.note"].delay(0).id)
        with standing_still(one):
            jobs = [ward.tasks[f"{lane}.note"].delay(number).id for number in range(3)]
            assert waiting(ward, lane) | unacknowledged(ward) == set(jobs)
            kill(one)
    with ward.worker("two", lane=lane):
        ward.done(*jobs)
    assert [len(ward.runs(job)) for job in jobs] == [1, 1, 1]


@pairs
def test_what_a_worker_had_when_it_was_stopped_and_killed_runs_to_its_end_once(ward: Ward, lane: str) -> None:
    with ward.worker("one", lane=lane, slots=3) as one:
        leased = ward.tasks[f"{lane}.book"].delay("7", "gate").id
        plain = ward.tasks[f"{lane}.wait_at_gate"].delay("gate").id
        eventually(lambda: ward.runs(leased) and ward.runs(plain))
        with standing_still(one):
            # For the free slot: RabbitMQ hands one over, though nobody reads it; on Valkey it may be on its way.
            more = [ward.tasks[f"{lane}.book"].delay(str(number)).id for number in range(3)]
            eventually(lambda: lane == "heavy" or ward.queue(lane).ready == 2, within_s=10)
            ward.open("gate")
            kill(one)
    with ward.worker("two", lane=lane, slots=2):
        eventually(
            lambda: {ward.meta(job)["status"] for job in (leased, plain, *more)} == {"SUCCESS"},
            within_s=AGAIN_WITHIN_S,
            otherwise=lambda: ward.said("two"),
        )
        eventually(lambda: ward.queue(lane).ready == 0 and ward.unacked() == 0)
    assert sorted(job for job, _ in ward.committed()) == sorted([leased, *more])
    assert [len(ward.runs(job)) for job in (leased, plain, *more)] == [2, 2, 1, 1, 1]


@VALKEY
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


@VALKEY
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


@VALKEY
def test_a_message_that_nobody_can_read_is_dropped_and_the_next_one_runs(ward: Ward) -> None:
    with ward.worker("one"):
        with redis.Redis.from_url(ward.place.broker_url) as client:
            client.lpush(ward.sw.queues["heavy"], "no message of kombu's")
        with ward.worker("two"):
            ward.done(ward.tasks["heavy.note"].delay(1).id)


@VALKEY
@pytest.mark.parametrize("priority", [0, 3, 9])
def test_a_message_of_any_priority_is_taken(ward: Ward, priority: int) -> None:
    with ward.worker("one", lane="waiting"):
        ward.done(ward.tasks["waiting.note"].apply_async((1,), priority=priority).id)

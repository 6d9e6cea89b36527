"""Counting in a worker's main process."""

import sys
import threading
from collections.abc import Iterator

import pytest
from celery.exceptions import Ignore, Reject, Retry
from celery.worker import state

from slackwater.adapters.celery.counting import NotStarted, Tally, busy_by_task
from slackwater.core.job import JobState


class Running:
    """A request that runs."""

    name = "serve"


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Let threads take turns as often as can be."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def test_a_tally_tells_started_from_dropped_and_failed_from_put_off() -> None:
    tally = Tally()
    for _ in range(8):
        tally.accept("serve")
    tally.accept("of another lane")
    tally.fail("serve", NotStarted(JobState.EXPIRED, "late"))
    tally.fail("serve", NotStarted(JobState.EXPIRED, "late"))
    tally.fail("serve", NotStarted(JobState.DUPLICATE, "its occurrence runs already"))
    for error in (ZeroDivisionError(), Retry(), Reject(), Ignore()):
        tally.fail("serve", error)
    counts = tally.of(["serve", "never seen"], slots=4, busy=1)
    assert (counts.slots, counts.busy, counts.started, counts.finished, counts.failed) == (4, 1, 5, 4, 1)
    assert counts.expired == {"late": 2}


@pytest.mark.usefixtures("hasty_threads")
def test_running_bodies_are_counted_while_the_pools_threads_change_them() -> None:
    stop, kept = threading.Event(), [Running() for _ in range(50)]

    def churn() -> None:
        while not stop.is_set():
            for request in kept[25:]:
                state.active_requests.add(request)
            for request in kept[25:]:
                state.active_requests.discard(request)

    for request in kept[:25]:
        state.active_requests.add(request)
    thread = threading.Thread(target=churn)
    thread.start()
    try:
        assert all(25 <= busy_by_task()["serve"] <= 50 for _ in range(500))
    finally:
        stop.set()
        thread.join()
        for request in kept:
            state.active_requests.discard(request)

"""Counting in a worker's main process."""

from collections.abc import Iterator
from weakref import WeakSet

import pytest
from celery.exceptions import Ignore, Reject, Retry
from celery.worker import state

from slackwater.adapters.celery.counting import NotStarted, Tally, busy_by_task
from slackwater.core.job import JobState


class Running:
    """A request that runs."""

    name = "serve"


class Changing(WeakSet[Running]):
    """Celery's set of running requests, changed by another thread during the first two looks at it."""

    looks = 0

    def __iter__(self) -> Iterator[Running]:
        self.looks += 1
        if self.looks < 3:
            raise RuntimeError("Set changed size during iteration")
        return super().__iter__()


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


def test_running_bodies_are_counted_though_the_pools_threads_change_them_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running = [Running(), Running()]
    requests = Changing(running)
    monkeypatch.setattr(state, "active_requests", requests)
    assert busy_by_task() == {"serve": 2}
    assert requests.looks == 3

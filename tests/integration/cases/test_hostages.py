"""Short jobs behind a long one."""

import pytest
from tests.integration.cases.ward import Ward, pairs
from tests.integration.celery.spine import eventually

STARTS_WITHIN_S = 15
"""Three times what is promised once another worker is ready."""


@pairs
def test_a_busy_worker_keeps_no_short_job_hostage(ward: Ward, lane: str) -> None:
    with ward.worker("one", lane=lane) as one:
        long = ward.tasks[f"{lane}.wait_at_gate"].delay("gate").id
        assert ward.holder(long, one) is one
        short = [ward.tasks[f"{lane}.note"].delay(number).id for number in range(3)]
        eventually(lambda: ward.queue(lane).ready == len(short))
        with ward.worker("two", lane=lane):
            eventually(lambda: all(ward.runs(job) for job in short), within_s=STARTS_WITHIN_S)
            ward.done(*short)
            assert ward.meta(long)["status"] == "STARTED"
            ward.open("gate")
            ward.done(long)
    assert [len(ward.runs(job)) for job in (long, *short)] == [1, 1, 1, 1]


@pytest.mark.parametrize("broker_url", ["valkey"], indirect=True)
def test_control_a_worker_that_fetches_in_advance_does(ward: Ward) -> None:
    with ward.stock_worker("greedy", STOCK_MULTIPLIER="4"):
        jobs = [ward.tasks["heavy.wait_at_gate"].delay("gate").id for _ in range(4)]
        eventually(lambda: ward.queue("heavy").unacked == 4)
        assert ward.queue("heavy").ready == 0
        with ward.worker("two"):
            other = ward.tasks["heavy.note"].delay(1).id
            ward.done(other)
            # Idle by now, and none of the other three is its to take.
            assert sum(bool(ward.runs(job)) for job in jobs) == 1
            ward.open("gate")
            ward.done(*jobs)

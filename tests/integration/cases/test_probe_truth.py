"""The probe says what is there: whatever the priority, whoever has fetched it; and unknown where it cannot look."""

import pytest
from tests.integration.cases.ward import Ward
from tests.integration.celery.spine import eventually

from slackwater.adapters.brokers import open_gauge
from slackwater.cli.balancer import probe_of
from slackwater.core.reading import LaneReading
from slackwater.engine.probe import Probe

PRIORITIES = (0, 3, 6, *[9] * 7)


def reading(ward: Ward) -> LaneReading:
    return next(one for one in probe_of(ward.sw).read() if one.lane == "heavy")


@pytest.mark.parametrize("broker_url", ["valkey"], indirect=True)
def test_all_priorities_are_ready_and_what_a_worker_fetched_in_advance_is_not(ward: Ward) -> None:
    task = ward.tasks["heavy.wait_at_gate"]
    jobs = [task.apply_async(("gate",), priority=priority).id for priority in PRIORITIES]
    assert (reading(ward).ready, reading(ward).unacked) == (10, 0)
    # Ours refuse to fetch in advance; a worker of somebody else's does not.
    with ward.stock_worker("greedy", STOCK_MULTIPLIER="4"):
        eventually(lambda: sum(bool(ward.runs(job)) for job in jobs) == 1)
        eventually(lambda: (reading(ward).ready, reading(ward).unacked) == (6, 4))
        ward.open("gate")
        ward.done(*jobs)
        eventually(lambda: (reading(ward).ready, reading(ward).unacked) == (0, 0))


def test_what_cannot_be_read_is_unknown_and_never_zero(ward: Ward) -> None:
    ward.tasks["heavy.note"].delay(1)
    known = reading(ward)
    assert (known.ready, known.workers) == (1, 0)
    lost = ward.lost_application()
    probe = Probe(queues=lost.queues, gauge=open_gauge(lost.app), presence=ward.sw.store.presence, clock=lost.clock)
    found = next(one for one in probe.read() if one.lane == "heavy")
    assert (found.ready, found.unacked, found.oldest_age, found.workers) == (None, None, None, 0)
    lost.app.close()

"""Workers that are told to go, in each way that there is, with a job in their hands."""

import signal
from contextlib import ExitStack

import pytest
from tests.integration.cases.application import effects
from tests.integration.cases.ward import EXITS_WITHIN_S, Ward, lanes, pairs
from tests.integration.celery.spine import eventually
from tests.programs import Program

RERUNS_WITHIN_S = 30
"""Three times what is promised after a kill."""
HAND_BACKS = 5


def nothing_is_left(ward: Ward, lane: str) -> None:
    """Look when all workers are gone: what they had not acknowledged is in their hands, or back in the queue."""
    eventually(lambda: ward.unacked() == 0 and ward.queue(lane).unacked in (0, None), within_s=RERUNS_WITHIN_S)
    assert ward.queue(lane).ready == 0


def gone(run: Program) -> None:
    run.wait(EXITS_WITHIN_S)


def both_ran(ward: Ward, *jobs: str, times: int) -> None:
    eventually(lambda: {len(ward.runs(job)) for job in jobs} == {times}, within_s=RERUNS_WITHIN_S)


@lanes
def test_sigterm_lets_the_job_end(ward: Ward, lane: str) -> None:
    with ward.worker("one", lane=lane) as one:
        job = ward.tasks[f"{lane}.book"].delay("7", "gate").id
        eventually(lambda: ward.runs(job))
        one.send_signal(signal.SIGTERM)
        eventually(lambda: "Warm shutdown" in ward.said("one"))
        ward.open("gate")
        gone(one)
        assert ward.meta(job)["status"] == "SUCCESS"
    with ward.worker("two", lane=lane):
        ward.done(ward.tasks[f"{lane}.note"].delay(1).id)
    nothing_is_left(ward, lane)
    assert [each for each, _ in ward.committed()] == [job]
    assert len(ward.runs(job)) == 1


@lanes
@pytest.mark.parametrize("soft", ["0", "3"])
def test_sigquit_hands_the_job_back_and_it_runs_once_more(ward: Ward, lane: str, soft: str) -> None:
    with ward.worker("one", lane=lane, CASES_SOFT_SHUTDOWN_S=soft) as one:
        job = ward.tasks[f"{lane}.book"].delay("7", "gate").id
        eventually(lambda: ward.runs(job))
        one.send_signal(signal.SIGQUIT)
        gone(one)
    # At its exit, before anybody else could look after it.
    assert ward.queue(lane).ready == 1
    assert ward.unacked() == 0
    with ward.worker("two", lane=lane):
        eventually(lambda: len(ward.runs(job)) == 2, within_s=RERUNS_WITHIN_S)
        ward.open("gate")
        ward.done(job)
    nothing_is_left(ward, lane)
    assert [each for each, _ in ward.committed()] == [job]
    assert len(ward.runs(job)) == 2


@lanes
def test_a_job_of_a_killed_worker_runs_again_once(ward: Ward, lane: str) -> None:
    with ExitStack() as first:
        one = first.enter_context(ward.worker("one", lane=lane))
        job = ward.tasks[f"{lane}.book"].delay("7", "gate").id
        eventually(lambda: ward.runs(job))
        one.kill()
    with ward.worker("two", lane=lane):
        eventually(lambda: len(ward.runs(job)) == 2, within_s=RERUNS_WITHIN_S)
        ward.open("gate")
        ward.done(job)
    nothing_is_left(ward, lane)
    assert [each for each, _ in ward.committed()] == [job]


@pairs
def test_five_hand_backs_in_a_row_are_no_poison(ward: Ward, lane: str) -> None:
    plain = ward.tasks[f"{lane}.wait_at_gate"].delay("gate").id
    leased = ward.tasks[f"{lane}.book"].delay("7", "gate").id
    for number in range(1, HAND_BACKS + 1):
        with ward.worker(f"worker{number}", lane=lane, slots=2) as run:
            both_ran(ward, plain, leased, times=number)
            run.send_signal(signal.SIGQUIT)
            gone(run)
    assert {one.attempts for one in ward.sw.store.runs.runs([plain, leased]).values()} <= {1, 2}
    ward.open("gate")
    with ward.worker("last", lane=lane, slots=2):
        ward.done(plain, leased)
    nothing_is_left(ward, lane)
    assert ward.sw.store.dead_letters.get(plain) is None
    with effects(ward.place) as connection:
        assert connection.execute("SELECT count(*) FROM effects").fetchone() == (1,)

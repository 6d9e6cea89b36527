"""A machine whose clock is wrong, and a deploy with which every job fails."""

import os
import subprocess
from datetime import timedelta
from threading import Event, Thread

from tests.integration.cases.application import MODULE
from tests.integration.cases.ward import Ward, other_pairs, pairs
from tests.integration.celery.spine import eventually
from tests.programs import finished

from slackwater.core.dead_letter import Flood, Pause
from slackwater.core.job import JobState
from slackwater.engine.breaker import Breaker
from slackwater.ports import LetterFilter

FULL, SLOTS = 3, 2
FLOOD = 12
PAUSED_WITHIN_S = 30


def resume(ward: Ward, lane: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **ward.place.environment}
    return finished("slackwater", "-A", MODULE, "dead", "resume", lane, env=env)


def pause(ward: Ward, lane: str, *, lasts: timedelta = timedelta(hours=1)) -> None:
    now = ward.sw.clock.run()
    ward.sw.store.dead_letters.pause([Pause(lane=lane, cause="x", reason="a test", since=now, until=now + lasts)])


@pairs
def test_a_worker_whose_clock_is_ahead_drops_what_is_late_and_nothing_that_is_in_time(ward: Ward, lane: str) -> None:
    with ward.worker("one", lane=lane, CASES_CLOCK_AHEAD_S="90"):
        soon = ward.sw.clock.calendar() + timedelta(seconds=60)
        in_time = ward.tasks[f"{lane}.note"].apply_async((1,), headers=ward.header(start_by=soon)).id
        parent = ward.tasks[f"{lane}.note_children"].apply_async((2,), headers=ward.header(start_by=soon)).id
        ward.done(in_time, parent)
        ward.done(*ward.meta(parent)["result"])
        assert "clock is ahead" in ward.said("one")
        # What is late by the store's clock is dropped all the same.
        late = ward.behind.app.tasks[f"{lane}.note"].apply_async((1,), headers=ward.late_header()).id
        assert ward.ended(late)["status"] == "REVOKED"
        assert ward.sw.store.endings.find([late])[late].state is JobState.EXPIRED
        assert not ward.runs(late)


@other_pairs
def test_a_paused_lane_takes_nothing_until_somebody_resumes_it_or_the_pause_is_over(ward: Ward, lane: str) -> None:
    with ward.worker("one", lane=lane, slots=2):
        ward.done(ward.tasks[f"{lane}.note"].delay(1).id)
        pause(ward, lane)
        eventually(lambda: "lane paused here" in ward.said("one"), within_s=PAUSED_WITHIN_S)
        eventually(lambda: not consumed(ward, lane), within_s=PAUSED_WITHIN_S)
        job = ward.tasks[f"{lane}.note"].delay(2).id
        held = ward.tasks[f"{lane}.retry_later"].delay(0.6).id
        eventually(lambda: ward.queue(lane).ready == 2)
        assert lane in ward.presence(lane).lanes
        assert not ward.runs(job)
        done = resume(ward, lane)
        assert (done.returncode, done.stdout.strip()) == (0, f"{lane} works again")
        ward.done(job, held)
        assert resume(ward, lane).returncode == 2
        # A pause that is over ends by itself.
        pause(ward, lane, lasts=timedelta(seconds=5))
        eventually(lambda: ward.said("one").count("lane paused here") == 2, within_s=PAUSED_WITHIN_S)
        ward.done(ward.tasks[f"{lane}.note"].delay(3).id)
        assert ward.said("one").count("lane consumed again") == 2


def consumed(ward: Ward, lane: str) -> bool:
    """Tell whether a worker consumes a lane's queue, by what it answers itself."""
    answers = ward.sw.app.control.inspect(timeout=2).active_queues() or {}
    return any(queue["name"] == ward.sw.queues[lane] for queues in answers.values() for queue in queues)


@pairs
def test_a_bad_deploy_pauses_its_lane_and_keeps_few_letters_whole(ward: Ward, lane: str) -> None:
    breaker = Breaker(store=ward.sw.store, clock=ward.sw.clock, rule=Flood(count=FLOOD), pause_for=timedelta(hours=1))
    stop = Event()

    def sweep() -> None:
        while not stop.wait(0.2):
            breaker.sweep()

    with ward.worker("one", lane=lane, slots=SLOTS, SLACKWATER_FULL_LETTERS_PER_CAUSE=str(FULL)):
        breaker.sweep()
        sweeping = Thread(target=sweep)
        sweeping.start()
        try:
            jobs = [ward.tasks[f"{lane}.fail"].delay().id for _ in range(FLOOD)]
            eventually(lambda: [one.lane for one in ward.sw.store.dead_letters.pauses()] == [lane])
            eventually(lambda: not consumed(ward, lane), within_s=PAUSED_WITHIN_S)
            more = [ward.tasks[f"{lane}.fail"].delay().id for _ in range(FLOOD)]
            eventually(lambda: ward.queue(lane).ready == len(more))
        finally:
            stop.set()
            sweeping.join()
        letters = ward.sw.store.dead_letters.list(LetterFilter(lane=lane), limit=100)
        ours = [one for one in letters if one.job in jobs]
        assert len(ours) == FLOOD
        whole = ward.sw.store.dead_letters.list(LetterFilter(lane=lane, cause="ArithmeticError"), limit=10_000)
        # One more for each other slot that buries in the same moment: they do not wait for each other.
        assert sum(one.message is not None for one in whole) < FULL + SLOTS
        assert not [job for job in more if ward.runs(job)]
        shown = status(ward)
        assert f"lane {lane} is paused until" in shown
        assert ward.sw.store.dead_letters.resume(lane)


def status(ward: Ward) -> str:
    done = finished("slackwater", "-A", MODULE, "status", env={**os.environ, **ward.place.environment})
    assert done.returncode == 0, done.stderr
    return done.stdout

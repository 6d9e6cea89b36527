"""The breaker pauses a lane in which nearly everything fails, and lets it try again."""

from datetime import timedelta
from uuid import UUID

import pytest
from tests.unit.engine.conftest import StillClock

from slackwater import minutes, seconds
from slackwater.adapters.memory import MemoryStore
from slackwater.core.dead_letter import DeadLetter, Flood
from slackwater.core.job import JobState
from slackwater.core.reading import LaneCounts, Presence
from slackwater.engine.breaker import Breaker


@pytest.fixture
def store(clock: StillClock) -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def breaker(store: MemoryStore, clock: StillClock) -> Breaker:
    return Breaker(store=store, clock=clock, rule=Flood(count=5), pause_for=minutes(5))


def bury(store: MemoryStore, clock: StillClock, count: int, *, cause: str = "KeyError", lane: str = "till") -> None:
    letters = [
        DeadLetter(
            job=f"{cause}-{clock.run().timestamp()}-{number}",
            task="sync",
            lane=lane,
            state=JobState.FAILED,
            cause=cause,
            reason=cause,
            attempts=1,
            tries=1,
            buried_at=clock.run(),
        )
        for number in range(count)
    ]
    store.dead_letters.bury(letters, full_per_cause=2)


def finished(store: MemoryStore, clock: StillClock, count: int) -> None:
    now = clock.run()
    store.presence.refresh(
        Presence(
            worker="till@host",
            boot=UUID(int=1),
            host="host",
            pid=1,
            started_at=now,
            refreshed_at=now,
            lives_for=seconds(10),
            lanes={"till": LaneCounts(slots=1, started=count, finished=count)},
        )
    )


def test_a_flood_of_one_cause_pauses_its_lane_once_and_no_other(
    store: MemoryStore, breaker: Breaker, clock: StillClock
) -> None:
    breaker.sweep()
    bury(store, clock, 5)
    bury(store, clock, 4, lane="bakery")
    swept = breaker.sweep()
    [pause] = store.dead_letters.pauses()
    assert (pause.lane, pause.cause, pause.until) == ("till", "KeyError", clock.run() + minutes(5))
    assert (swept.found_count, breaker.sweep().found_count) == (1, 0)


def test_failures_among_much_that_works_are_no_flood(store: MemoryStore, breaker: Breaker, clock: StillClock) -> None:
    finished(store, clock, 100)
    breaker.sweep()
    clock.move(seconds(10))
    finished(store, clock, 150)
    bury(store, clock, 20)
    breaker.sweep()
    assert not store.dead_letters.pauses()


def test_failures_of_many_causes_are_no_flood_of_one(store: MemoryStore, breaker: Breaker, clock: StillClock) -> None:
    for cause in ("KeyError", "OSError", "ValueError"):
        bury(store, clock, 4, cause=cause)
    breaker.sweep()
    assert not store.dead_letters.pauses()


def test_a_paused_lane_may_try_again_and_is_paused_again_if_nothing_has_changed(
    store: MemoryStore, breaker: Breaker, clock: StillClock
) -> None:
    bury(store, clock, 5)
    breaker.sweep()
    clock.move(minutes(5))
    breaker.sweep()
    assert not store.dead_letters.pauses()
    bury(store, clock, 5)
    breaker.sweep()
    assert [pause.lane for pause in store.dead_letters.pauses()] == ["till"]


def test_what_failed_long_ago_pauses_nothing(store: MemoryStore, breaker: Breaker, clock: StillClock) -> None:
    bury(store, clock, 5)
    clock.move(timedelta(minutes=2))
    breaker.sweep()
    assert not store.dead_letters.pauses()

"""A lane that consumes answers; one that only seems to live is told once, and once more when it answers again."""

from uuid import UUID

import pytest
from structlog.testing import capture_logs
from tests.unit.engine.conftest import StillClock

from slackwater import seconds
from slackwater.adapters.memory import MemoryStore
from slackwater.core.dead_letter import Pause
from slackwater.core.reading import LaneCounts, Presence
from slackwater.engine.canaries import Canaries


def lives(store: MemoryStore, clock: StillClock, lane: str = "till") -> None:
    now = clock.run()
    store.presence.refresh(
        Presence(
            worker=f"{lane}@host",
            boot=UUID(int=1),
            host="host",
            pid=1,
            started_at=now,
            refreshed_at=now,
            lives_for=seconds(600),
            lanes={lane: LaneCounts(slots=1)},
        )
    )


@pytest.fixture
def sent() -> list[str]:
    return []


@pytest.fixture
def canaries(store: MemoryStore, clock: StillClock, sent: list[str]) -> Canaries:
    return Canaries(
        canaries=store.canaries,
        presence=store.presence,
        paused=lambda: [one.lane for one in store.dead_letters.pauses()],
        send=sent.append,
        clock=clock,
        within=seconds(60),
    )


def test_only_a_lane_with_living_workers_gets_one_and_no_second_before_it_has_answered(
    canaries: Canaries, store: MemoryStore, clock: StillClock, sent: list[str]
) -> None:
    canaries.sweep()
    assert not sent
    lives(store, clock)
    canaries.sweep()
    canaries.sweep()
    assert sent == ["till"]
    clock.move(seconds(1))
    store.canaries.answer("till", at=clock.run(), worker="till@host")
    clock.move(seconds(15))
    assert canaries.sweep().found_count == 0
    assert sent == ["till", "till"]


def test_a_lane_that_does_not_answer_is_told_once_and_asked_again(
    canaries: Canaries, store: MemoryStore, clock: StillClock, sent: list[str]
) -> None:
    lives(store, clock)
    with capture_logs() as logs:
        canaries.sweep()
        for _ in range(3):
            clock.move(seconds(61))
            assert canaries.sweep().note == "till"
        store.canaries.answer("till", at=clock.run(), worker="till@host")
        assert canaries.sweep().note == ""
    assert [line["event"] for line in logs] == ["lane does not answer", "lane answers again"]
    assert len(sent) == 5


def test_a_lane_that_is_paused_is_not_asked(
    canaries: Canaries, store: MemoryStore, clock: StillClock, sent: list[str]
) -> None:
    lives(store, clock)
    now = clock.run()
    store.dead_letters.pause([Pause(lane="till", cause="KeyError", reason="flood", since=now, until=now + seconds(9))])
    canaries.sweep()
    assert not sent
    store.dead_letters.resume("till")
    canaries.sweep()
    assert sent == ["till"]

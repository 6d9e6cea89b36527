from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from slackwater.core.dead_letter import CauseCount, Flood, Pause, floods

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
RULE = Flood(count=10, within=timedelta(minutes=1), share=0.9)


def paused(*counts: CauseCount) -> tuple[Pause, ...]:
    return floods(counts, rule=RULE, now=NOON, pause_for=timedelta(minutes=5))


def counted(count: int, ended_count: int, lane: str = "network") -> CauseCount:
    return CauseCount(lane=lane, cause="ValueError", count=count, ended_count=ended_count)


def test_a_flood_of_one_cause_pauses_its_lane_and_says_why() -> None:
    assert paused(counted(18, 20), counted(1, 20, lane="compute")) == (
        Pause(
            lane="network",
            cause="ValueError",
            reason="18 of 20 jobs ended in ValueError within 0:01:00",
            since=NOON,
            until=NOON + timedelta(minutes=5),
        ),
    )


@pytest.mark.parametrize(("count", "ended_count"), [(9, 9), (9, 0), (17, 20), (10, 12), (0, 0)])
def test_few_letters_or_a_lane_that_also_succeeds_pause_nothing(count: int, ended_count: int) -> None:
    assert paused(counted(count, ended_count)) == ()


@pytest.mark.parametrize(("count", "ended_count"), [(10, 10), (10, 11), (9000, 10000)])
def test_the_limits_themselves_are_a_flood(count: int, ended_count: int) -> None:
    assert len(paused(counted(count, ended_count))) == 1

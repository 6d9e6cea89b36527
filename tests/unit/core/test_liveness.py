"""Whose silence means that he is dead."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slackwater.core.liveness import is_dead, last_sign

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def judge(**facts: Any) -> bool:
    given = {"presence_lapsed": True, "connections": 0, "lapsed_for": SECOND, "frozen_after": 30 * SECOND, **facts}
    return is_dead(**given).dead


@pytest.mark.parametrize("connections", [0, None, 3])
def test_whose_presence_is_fresh_lives_whatever_the_broker_sees(connections: int | None) -> None:
    assert not judge(presence_lapsed=False, connections=connections)


def test_who_is_silent_and_unseen_is_dead() -> None:
    assert judge(connections=0)


def test_where_the_broker_cannot_tell_silence_is_enough() -> None:
    assert judge(connections=None)


def test_who_is_silent_and_seen_lives_until_he_counts_as_stopped() -> None:
    assert not judge(connections=1, lapsed_for=29 * SECOND)
    assert judge(connections=1, lapsed_for=30 * SECOND)


def test_who_never_counts_as_stopped_lives_while_he_is_seen() -> None:
    assert not judge(connections=1, lapsed_for=timedelta(days=1), frozen_after=None)


def test_a_verdict_says_why() -> None:
    verdict = is_dead(presence_lapsed=True, connections=2, lapsed_for=SECOND, frozen_after=30 * SECOND)
    assert verdict.reason == "the broker sees 2 of its connections"


@pytest.mark.parametrize(
    ("said_at", "counts_as"),
    [(NOON + SECOND, NOON + SECOND), (NOON - 90 * SECOND, NOON), (NOON + 90 * SECOND, NOON + 2 * SECOND)],
    ids=["clocks agree", "its clock is behind", "its clock is ahead"],
)
def test_a_sign_of_life_counts_from_between_the_looks_whatever_clock_said_it(
    said_at: datetime, counts_as: datetime
) -> None:
    assert last_sign(said_at=said_at, looked_before=NOON, now=NOON + 2 * SECOND) == counts_as

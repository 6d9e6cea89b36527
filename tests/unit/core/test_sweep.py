from __future__ import annotations

from datetime import UTC, datetime, timedelta

from slackwater.core.sweep import Amnesty, amnesty

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
LIVES_FOR = timedelta(seconds=30)


def judged(now: datetime, back_since: datetime | None = NOON) -> Amnesty | None:
    return amnesty(back_since=back_since, lives_for=LIVES_FOR, now=now, what="store")


def test_where_nothing_was_away_everybodys_silence_counts() -> None:
    assert judged(NOON, back_since=None) is None


def test_after_an_outage_nobody_is_called_dead_for_one_time_to_live() -> None:
    expected = Amnesty(until=NOON + LIVES_FOR, reason="the store was away until 12:00:00")

    assert judged(NOON) == expected
    assert judged(NOON + LIVES_FOR - timedelta(microseconds=1)) == expected


def test_then_silence_counts_again() -> None:
    assert judged(NOON + LIVES_FOR) is None

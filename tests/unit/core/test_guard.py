from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from slackwater.core.guard import Expire, Start, may_start
from slackwater.core.job import ExpiryReason, Mark

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
MARK = Mark(published_at=NOON - timedelta(hours=1), start_by=NOON)


@pytest.mark.parametrize("mark", [None, Mark(published_at=NOON)], ids=["not ours", "no start_by"])
def test_a_job_without_a_start_by_always_may(mark: Mark | None) -> None:
    assert may_start(mark, now=NOON + timedelta(days=999)) == Start()


def test_the_last_instant_itself_is_in_time() -> None:
    assert may_start(MARK, now=NOON) == Start()


def test_later_than_that_it_expires_and_says_how_late_it_was() -> None:
    assert may_start(MARK, now=NOON + timedelta(seconds=1.5)) == Expire(reason=ExpiryReason.LATE, late_by_s=1.5)


def test_one_that_may_have_had_its_effect_starts_late_to_find_out() -> None:
    assert may_start(MARK, now=NOON + timedelta(days=1), may_have_had_effect=True) == Start()

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from slackwater.core.guard import Expire, Start, Stop, may_start, may_start_parent
from slackwater.core.job import ExpiryReason, Mark
from slackwater.core.occurrence import OccurrenceState

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
MARK = Mark(published_at=NOON - timedelta(hours=1), start_by=NOON)


@pytest.mark.parametrize("mark", [None, Mark(published_at=NOON)], ids=["not ours", "no start_by"])
def test_a_job_without_a_start_by_always_may(mark: Mark | None) -> None:
    assert may_start(mark, now=NOON + timedelta(days=999)) == Start()


def test_the_last_instant_itself_is_in_time() -> None:
    assert may_start(MARK, now=NOON) == Start()


def test_later_than_that_it_expires_and_says_how_late_it_was() -> None:
    assert may_start(MARK, now=NOON + timedelta(seconds=1.5)) == Expire(reason=ExpiryReason.LATE, late_by_s=1.5)


@pytest.mark.parametrize("state", [None, OccurrenceState.DUE, OccurrenceState.QUEUED])
@pytest.mark.parametrize("redelivered", [False, True])
def test_the_parent_of_an_occurrence_that_has_not_started_may(state: OccurrenceState | None, redelivered: bool) -> None:
    assert may_start_parent(state, redelivered=redelivered) == Start()


def test_a_second_copy_of_a_running_parent_may_not_but_a_redelivered_one_may() -> None:
    assert may_start_parent(OccurrenceState.RUNNING, redelivered=False) == Stop(reason="its occurrence runs already")
    assert may_start_parent(OccurrenceState.RUNNING, redelivered=True) == Start()


@pytest.mark.parametrize("state", [state for state in OccurrenceState if state.final])
def test_no_parent_starts_again_after_its_occurrence_has_ended(state: OccurrenceState) -> None:
    assert may_start_parent(state, redelivered=True) == Stop(reason=f"its occurrence has ended as {state}")

"""What becomes of a run whose lease has ended."""

from datetime import timedelta

import pytest

from slackwater import hours, minutes, seconds
from slackwater.core.under_way import Fate, GiveUp, Leave, TakeBack, fate_of

MINUTE = minutes(1)


def fate(leaseless_for: timedelta, *, kept: bool = True, served: bool = True, lost_after: timedelta = MINUTE) -> Fate:
    return fate_of(
        leaseless_for=leaseless_for, lost_after=lost_after, kept=kept, served=served, hopeless_after=hours(1)
    )


def test_one_that_may_still_come_again_by_itself_is_left_alone() -> None:
    assert fate(seconds(59)) == Leave()


def test_one_that_is_lost_is_taken_back_with_the_reason() -> None:
    assert fate(seconds(60)) == TakeBack("lost: its lease ended 60 s ago without a word of its end")


@pytest.mark.parametrize(
    ("kept", "served", "why"), [(False, True, "its message is not kept"), (True, False, "its lane is gone")]
)
def test_one_that_cannot_be_started_again_is_given_up_after_longer(*, kept: bool, served: bool, why: str) -> None:
    assert fate(minutes(59), kept=kept, served=served) == Leave()
    assert fate(hours(1), kept=kept, served=served) == GiveUp(
        f"its lease ended 3600 s ago without a word of its end, and {why}"
    )


def test_it_is_never_given_up_before_others_are_taken_back() -> None:
    assert fate(hours(1), kept=False, lost_after=hours(2)) == Leave()

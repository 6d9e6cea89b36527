from __future__ import annotations

from datetime import timedelta

import pytest

from slackwater.core.retry import Again, Backoff, GiveUp, RetryPolicy, next_try
from slackwater.core.spans import minutes, seconds

POLICY = RetryPolicy(backoff=Backoff(tries=4, base=seconds(2), cap=seconds(6)), retry_on=(OSError, KeyError))


def test_the_longest_wait_doubles_up_to_the_cap() -> None:
    backoff = Backoff(base=seconds(1), cap=seconds(10))

    assert [backoff.longest(done) for done in (1, 2, 3, 4, 5, 9999)] == [seconds(s) for s in (1, 2, 4, 8, 10, 10)]


def test_a_base_of_nothing_never_waits() -> None:
    assert Backoff(base=timedelta(0)).longest(50) == timedelta(0)


@pytest.mark.parametrize(("chance", "after"), [(0.0, 0), (0.5, 1), (0.999, 1.998)])
def test_waits_are_drawn_evenly_between_nothing_and_the_longest(chance: float, after: float) -> None:
    decision = next_try(POLICY, OSError(), tries_done=1, chance=lambda: chance)

    assert decision == Again(after=seconds(after), reason="OSError at try 1 of 4")


def test_without_jitter_the_longest_is_waited() -> None:
    policy = RetryPolicy(backoff=Backoff(base=seconds(2), jitter=False))

    assert next_try(policy, OSError(), tries_done=2, chance=lambda: 0.0) == Again(
        after=seconds(4), reason="OSError at try 2 of 4"
    )


def test_an_error_of_a_kind_that_is_listed_or_below_it_is_tried_again() -> None:
    for error in (ConnectionResetError(), KeyError("x")):
        assert isinstance(next_try(POLICY, error, tries_done=1, chance=lambda: 0.1), Again)


def test_an_error_of_another_kind_fails_at_once() -> None:
    assert next_try(POLICY, ValueError(), tries_done=1, chance=lambda: 0.1) == GiveUp(
        reason="ValueError is not to be retried"
    )


def test_the_last_try_gives_up() -> None:
    assert isinstance(next_try(POLICY, OSError(), tries_done=3, chance=lambda: 0.1), Again)
    assert next_try(POLICY, OSError(), tries_done=4, chance=lambda: 0.1) == GiveUp(
        reason="OSError at the last of 4 tries"
    )


def test_the_wait_that_a_peer_asked_for_is_kept_even_beyond_the_cap() -> None:
    decision = next_try(POLICY, OSError(), tries_done=1, chance=lambda: 0.9, retry_after=minutes(5))

    assert decision == Again(after=minutes(5), reason="OSError; the peer asked for 300 s")


def test_a_shorter_wait_than_drawn_does_not_bring_the_job_back_sooner() -> None:
    decision = next_try(POLICY, OSError(), tries_done=1, chance=lambda: 0.5, retry_after=seconds(0.1))

    assert isinstance(decision, Again)
    assert decision.after == seconds(1)


def test_a_peers_wish_makes_no_more_tries() -> None:
    assert isinstance(next_try(POLICY, OSError(), tries_done=4, chance=lambda: 0.5, retry_after=seconds(1)), GiveUp)


@pytest.mark.parametrize("tries", [0, -1])
def test_no_tries_at_all_is_refused(tries: int) -> None:
    with pytest.raises(ValueError, match="tries must be at least 1"):
        Backoff(tries=tries)


@pytest.mark.parametrize(("base", "cap"), [(-1, 5), (6, 5)])
def test_a_base_below_nothing_or_above_the_cap_is_refused(base: float, cap: float) -> None:
    with pytest.raises(ValueError, match="must be between nothing and cap"):
        Backoff(base=seconds(base), cap=seconds(cap))

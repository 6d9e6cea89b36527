"""The rate limit as a pure function."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightshift.world.limiter import RateLimit, admit

RATES = st.floats(min_value=0.5, max_value=200)
BURSTS = st.integers(min_value=1, max_value=20)
PAUSES = st.lists(st.floats(min_value=0, max_value=2), min_size=1, max_size=200)


def granted_moments(limit: RateLimit, moments: list[float]) -> list[float]:
    arrival_s, granted = 0.0, []
    for moment in moments:
        admission = admit(limit, arrival_s, now_s=moment)
        arrival_s = admission.arrival_s
        if admission.granted:
            granted.append(moment)
    return granted


@given(rate=RATES, burst=BURSTS, pauses=PAUSES)
def test_no_span_of_time_sees_more_calls_than_the_burst_and_the_rate_allow(
    rate: float, burst: int, pauses: list[float]
) -> None:
    granted = granted_moments(RateLimit(calls_per_second=rate, burst=burst), list(accumulate(pauses)))
    for first, start in enumerate(granted):
        for last in range(first, len(granted)):
            assert last - first + 1 <= burst + rate * (granted[last] - start) + 1e-6


@given(rate=RATES, burst=BURSTS)
def test_a_burst_is_let_in_at_one_instant_and_the_next_call_is_not(rate: float, burst: int) -> None:
    limit = RateLimit(calls_per_second=rate, burst=burst)
    assert len(granted_moments(limit, [5.0] * (burst + 1))) == burst


@given(rate=RATES, burst=BURSTS, refused=st.integers(min_value=1, max_value=50))
def test_a_refused_call_is_let_in_after_the_wait_it_was_told_however_often_others_ask(
    rate: float, burst: int, refused: int
) -> None:
    limit = RateLimit(calls_per_second=rate, burst=burst)
    arrival_s = 0.0
    for _ in range(burst):
        arrival_s = admit(limit, arrival_s, now_s=1.0).arrival_s
    for _ in range(refused):
        refusal = admit(limit, arrival_s, now_s=1.0)
        assert not refusal.granted
        arrival_s = refusal.arrival_s
    assert admit(limit, arrival_s, now_s=1.0 + refusal.retry_after_s + 1e-9).granted


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (12, 0)])
def test_a_limit_that_lets_nothing_in_is_refused(rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match="burst"):
        RateLimit(calls_per_second=rate, burst=burst)

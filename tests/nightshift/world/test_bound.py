"""The lower bound of a fan-out, against schedules that keep to the limits."""

import datetime as dt
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightshift.world.books import Call
from nightshift.world.bound import fan_out_bound_s, in_order_bound_s, needed_calls, observed_span_s
from nightshift.world.kinds import Fault, PathKind
from nightshift.world.limiter import RateLimit, admit

START = dt.datetime(2026, 11, 30, 1, 30, tzinfo=dt.UTC)


def call(
    call_id: int, job_id: str | None, *, received_s: float, latency_s: float, granted_s: float | None = None
) -> Call:
    granted_s = received_s if granted_s is None else granted_s
    return Call(
        call_id=call_id,
        received_at=START + dt.timedelta(seconds=received_s),
        answered_at=START + dt.timedelta(seconds=granted_s + latency_s),
        method="GET",
        kind=PathKind.BALANCES,
        subject=f"account-{job_id}",
        query=str(call_id),
        job_id=job_id,
        granted_at=START + dt.timedelta(seconds=granted_s),
        ask=0,
        latency_s=latency_s,
        fault=None,
        status=200,
        retry_after_s=None,
        replayed=False,
    )


@dataclass
class Step:
    job: int
    pause_s: float
    latency_s: float
    is_throttled: bool


STEPS = st.lists(
    st.builds(
        Step,
        job=st.integers(0, 8),
        pause_s=st.floats(0, 0.5),
        latency_s=st.floats(0, 5),
        is_throttled=st.booleans(),
    ),
    max_size=60,
)


def schedule(steps: list[Step], limit: RateLimit) -> list[Call]:
    """Let the jobs call one after another, each call as soon as its pause is over and the limit grants it."""
    free_s = dict.fromkeys(range(9), 0.0)
    pending = {job: [step for step in steps if step.job == job] for job in range(9)}
    arrival_s = 0.0
    calls: list[Call] = []
    while any(pending.values()):
        job = min((job for job in pending if pending[job]), key=lambda j: free_s[j] + pending[j][0].pause_s)
        step = pending[job][0]
        now_s = free_s[job] + step.pause_s
        admission = admit(limit, arrival_s, now_s=now_s)
        if not admission.granted:
            free_s[job], step.pause_s = now_s + admission.retry_after_s + 1e-6, 0.0
            continue
        arrival_s = admission.arrival_s
        pending[job].pop(0)
        made = call(len(calls), f"job-{job}", received_s=now_s, latency_s=step.latency_s)
        free_s[job] = now_s + step.latency_s
        if step.is_throttled:
            made = replace(made, fault=Fault.SCRIPTED_429, status=429, retry_after_s=1.0)
            free_s[job] += 1.0
        calls.append(made)
    return calls


@given(steps=STEPS, rate=st.floats(1, 30), burst=st.integers(1, 6))
def test_neither_bound_exceeds_what_a_lawful_schedule_took_nor_the_one_the_other(
    steps: list[Step], rate: float, burst: int
) -> None:
    calls = schedule(steps, RateLimit(calls_per_second=rate, burst=burst))
    bound_s = fan_out_bound_s(calls, calls_per_second=rate, burst=burst)
    in_order_s = in_order_bound_s(calls, calls_per_second=rate, burst=burst)
    assert bound_s - 1e-4 <= in_order_s <= observed_span_s(calls) + 1e-4


@given(latency_s=st.floats(0.1, 5), count=st.integers(1, 80), burst=st.integers(1, 6))
def test_the_bound_is_exact_for_calls_that_are_all_alike(latency_s: float, count: int, burst: int) -> None:
    limit = RateLimit(calls_per_second=12, burst=burst)
    steps = [Step(job=n % 9, pause_s=0, latency_s=latency_s, is_throttled=False) for n in range(count)]
    calls = [replace(one, job_id=f"own-{one.call_id}") for one in schedule(steps, limit)]
    bound_s = fan_out_bound_s(calls, calls_per_second=12, burst=burst)
    in_order_s = in_order_bound_s(calls, calls_per_second=12, burst=burst)
    assert bound_s == pytest.approx(in_order_s) == pytest.approx(max(0, count - burst) / 12 + latency_s)


def test_one_long_job_bounds_the_whole() -> None:
    calls = [call(n, "long", received_s=10 * n, latency_s=10) for n in range(3)]
    calls += [call(9, "short", received_s=0, latency_s=1)]
    assert fan_out_bound_s(calls, calls_per_second=100, burst=100) == 30


def test_the_slowest_call_cannot_be_the_last_of_an_ideal_schedule() -> None:
    calls = [call(n, f"job-{n}", received_s=n, latency_s=20 if n == 0 else 1) for n in range(11)]
    assert fan_out_bound_s(calls, calls_per_second=1, burst=1) == 20
    assert fan_out_bound_s(calls[1:], calls_per_second=1, burst=1) == 10


def test_in_order_a_slow_call_at_the_end_is_no_waste_but_a_late_call_is() -> None:
    calls = [call(n, f"job-{n}", received_s=n, latency_s=20 if n == 10 else 1) for n in range(11)]
    assert fan_out_bound_s(calls, calls_per_second=1, burst=1) == 20
    assert in_order_bound_s(calls, calls_per_second=1, burst=1) == 30
    late = [call(n, f"job-{n}", received_s=3 * n, latency_s=20 if n == 10 else 1) for n in range(11)]
    assert observed_span_s(late) == 50
    assert in_order_bound_s(late, calls_per_second=1, burst=1) == 30


def test_what_the_work_did_not_need_is_left_out() -> None:
    first = call(1, "job", received_s=0, latency_s=1)
    failed = replace(first, call_id=0, status=503, fault=Fault.SCRIPTED_5XX)
    success = replace(call(2, "job", received_s=2, latency_s=1), query=first.query)
    again = replace(call(3, "job", received_s=4, latency_s=1), query=first.query)
    refused = replace(call(4, "job", received_s=6, latency_s=0), granted_at=None, status=429)
    cut_off = replace(call(5, "job", received_s=8, latency_s=1), answered_at=None, status=None)
    filing = replace(call(6, "job", received_s=10, latency_s=1), kind=PathKind.FILING_SUBMIT)
    other = call(7, "job", received_s=12, latency_s=1)
    overlapping = call(8, "job", received_s=12.5, latency_s=1)
    calls = [overlapping, other, filing, cut_off, refused, again, success, failed]
    assert [one.call_id for one in needed_calls(calls)] == [0, 2, 7]


def test_the_wait_after_a_throttled_call_counts_only_as_far_as_it_was_waited() -> None:
    throttled = replace(
        call(0, "job", received_s=0, latency_s=0), status=429, fault=Fault.SCRIPTED_429, retry_after_s=5.0
    )
    later = call(1, "job", received_s=2, latency_s=1)
    assert fan_out_bound_s([throttled, later], calls_per_second=9, burst=9) == 3
    assert fan_out_bound_s([throttled], calls_per_second=9, burst=9) == 0


def test_no_calls_need_no_time() -> None:
    assert fan_out_bound_s([], calls_per_second=12, burst=6) == 0
    assert observed_span_s([]) == 0

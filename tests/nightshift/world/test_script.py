"""What is drawn for a call."""

import datetime as dt
import statistics

import pytest

from nightshift.world.chance import LognormalRule, units
from nightshift.world.kinds import Fault, PathKind
from nightshift.world.script import WorldRules, plan_call

RULES = WorldRules(seed=7, today=dt.date(2026, 11, 30))


def plans(rules: WorldRules, count: int) -> list[tuple[Fault | None, float]]:
    drawn = [plan_call(rules, PathKind.BALANCES, subject=f"account-{n}", ask=0) for n in range(count)]
    return [(plan.fault, plan.latency_s) for plan in drawn]


def test_a_plan_depends_on_each_of_seed_endpoint_subject_and_ask() -> None:
    base = plan_call(RULES, PathKind.BALANCES, subject="a", ask=0)
    others = [
        plan_call(WorldRules(seed=8, today=RULES.today), PathKind.BALANCES, subject="a", ask=0),
        plan_call(RULES, PathKind.DETAILS, subject="a", ask=0),
        plan_call(RULES, PathKind.BALANCES, subject="b", ask=0),
        plan_call(RULES, PathKind.BALANCES, subject="a", ask=1),
    ]
    assert base == plan_call(RULES, PathKind.BALANCES, subject="a", ask=0)
    assert len({base.latency_s, *(other.latency_s for other in others)}) == 5


def test_latencies_have_the_median_and_the_spread_that_were_asked_for() -> None:
    latencies = [latency for fault, latency in plans(RULES, 4000) if fault is not Fault.SCRIPTED_429]
    p16, p50, p84 = (statistics.quantiles(latencies, n=100)[at] for at in (15, 49, 83))
    assert p50 == pytest.approx(2.5, rel=0.05)
    assert p84 / p50 == pytest.approx(2.718**0.7, rel=0.1)
    assert p50 / p16 == pytest.approx(2.718**0.7, rel=0.1)


def test_about_one_in_a_hundred_calls_is_throttled_and_one_in_a_hundred_fails() -> None:
    faults = [fault for fault, _ in plans(RULES, 10_000)]
    assert 70 <= faults.count(Fault.SCRIPTED_429) <= 130
    assert 70 <= faults.count(Fault.SCRIPTED_5XX) <= 130


def test_a_throttled_call_is_answered_at_once_and_a_failing_one_after_its_latency() -> None:
    throttled = WorldRules(seed=7, today=RULES.today, throttled_ratio=1, failed_ratio=0)
    failing = WorldRules(seed=7, today=RULES.today, throttled_ratio=0, failed_ratio=1)
    plan = plan_call(throttled, PathKind.DETAILS, subject="a", ask=0)
    assert (plan.status, plan.latency_s) == (429, 0)
    plan = plan_call(failing, PathKind.DETAILS, subject="a", ask=0)
    assert plan.status >= 500
    assert plan.latency_s > 0


def test_the_gateway_has_no_scripted_faults_and_files_before_it_answers() -> None:
    failing = WorldRules(seed=7, today=RULES.today, throttled_ratio=0.5, failed_ratio=0.5)
    for ask in range(100):
        plan = plan_call(failing, PathKind.FILING_SUBMIT, subject="key", ask=ask)
        assert plan.fault is None
        assert 0 < plan.effect_after_s < plan.latency_s


def test_units_lie_inside_zero_and_one_and_fill_it_evenly() -> None:
    drawn = [unit for n in range(1000) for unit in units(1, n)]
    assert min(drawn) > 0
    assert max(drawn) < 1
    assert statistics.fmean(drawn) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(("throttled", "failed"), [(0.6, 0.6), (-0.1, 0)])
def test_shares_that_do_not_fit_are_refused(throttled: float, failed: float) -> None:
    with pytest.raises(ValueError, match="ratio"):
        WorldRules(seed=7, today=RULES.today, throttled_ratio=throttled, failed_ratio=failed)


def test_a_distribution_without_spread_always_draws_its_median() -> None:
    rule = LognormalRule(median=2.5, sigma=0)
    assert [rule.at(unit) for unit in (0.01, 0.5, 0.99)] == [2.5, 2.5, 2.5]
    with pytest.raises(ValueError, match="median"):
        LognormalRule(median=0, sigma=1)

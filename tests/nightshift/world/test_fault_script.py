"""The script of faults, as a file and as a decision."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from nightshift.world.faults import FaultRule, FaultScriptError, read_faults
from nightshift.world.kinds import AGGREGATOR_KINDS, Fault, PathKind
from nightshift.world.script import Plan, WorldRules, plan_call


def rules(*faults: FaultRule, seed: int = 7) -> WorldRules:
    return WorldRules(seed=seed, today=dt.date(2026, 11, 30), throttled_ratio=0, failed_ratio=0, faults=faults)


def plan(of: WorldRules, *, subject: str = "a", ask: int = 0, at_s: float = 0.0) -> Plan:
    return plan_call(of, PathKind.BALANCES, subject=subject, ask=ask, at_s=at_s)


def read(tmp_path: Path, *told: Any) -> tuple[FaultRule, ...]:
    path = tmp_path / "faults.json"
    path.write_text(json.dumps({"faults": list(told)}))
    return read_faults(path)


def test_a_script_is_read_as_it_is_written(tmp_path: Path) -> None:
    burst, lost = read(
        tmp_path,
        {"fault": "scripted_429", "kinds": ["balances"], "ratio": 0.9, "from_s": 20, "to_s": 30, "retry_after_s": 2},
        {"fault": "lost_answer", "kinds": ["filing_submit"], "asks": [0], "subjects": ["k"]},
    )
    assert (burst.fault, burst.kinds, burst.ratio) == (Fault.SCRIPTED_429, frozenset({PathKind.BALANCES}), 0.9)
    assert (burst.from_s, burst.to_s, burst.retry_after_s, burst.status) == (20, 30, 2, 429)
    assert (lost.asks, lost.subjects) == (frozenset({0}), frozenset({"k"}))


def test_a_fault_that_names_no_endpoint_can_happen_wherever_it_makes_sense() -> None:
    assert FaultRule(fault=Fault.HANG).kinds == AGGREGATOR_KINDS | {PathKind.FILING_SUBMIT, PathKind.FILING_LOOKUP}
    assert FaultRule(fault=Fault.ENDLESS_PAGE).kinds == {PathKind.TRANSACTIONS}


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"fault": "hagn"}, "hagn"),
        ({"ratio": 1}, "'fault' is missing"),
        ({"fault": "hang", "ration": 1}, "perhaps 'ratio'"),
        ({"fault": "hang", "ratio": 1.5}, "ratio 1.5"),
        ({"fault": "hang", "from_s": 9, "to_s": 9}, "window from 9 s to 9 s is empty"),
        ({"fault": "hang", "kinds": ["session"]}, "can happen to"),
        ({"fault": "endless_page", "kinds": ["balances"]}, "transactions alone"),
        ({"fault": "scripted_5xx", "status": 404}, "404 is no 5xx"),
        ({"fault": "slow", "factor": 0}, "factor 0"),
        ({"fault": "rate_limit"}, "the rate limit is no fault"),
        ({"fault": "scripted_429", "retry_after_s": -1}, "must not be negative"),
    ],
)
def test_a_wrong_rule_is_refused_in_one_line(tmp_path: Path, told: dict[str, Any], why: str) -> None:
    with pytest.raises(FaultScriptError, match=r"script of faults .*faults\.json") as refused:
        read(tmp_path, told)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"faults": 3}', '{"faults": [3]}'])
def test_what_is_no_script_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "faults.json"
    path.write_text(content)
    with pytest.raises(FaultScriptError):
        read_faults(path)


def test_a_window_is_open_from_its_first_second_and_closed_at_its_last() -> None:
    burst = rules(FaultRule(fault=Fault.SCRIPTED_5XX, from_s=10, to_s=20, status=502, retry_after_s=3))
    assert [plan(burst, at_s=at_s).fault for at_s in (9.9, 10, 19.9, 20)] == [
        None,
        Fault.SCRIPTED_5XX,
        Fault.SCRIPTED_5XX,
        None,
    ]
    assert (plan(burst, at_s=10).status, plan(burst, at_s=10).retry_after_s) == (502, 3)


def test_a_share_is_drawn_by_call_and_again_alike() -> None:
    half = rules(FaultRule(fault=Fault.HANG, ratio=0.5))
    drawn = [plan(half, subject=f"a{n}").fault for n in range(1000)]
    assert drawn == [plan(half, subject=f"a{n}").fault for n in range(1000)]
    assert 430 <= drawn.count(Fault.HANG) <= 570
    assert {plan(half, ask=ask).fault for ask in range(20)} == {None, Fault.HANG}
    assert drawn != [plan(rules(*half.faults, seed=8), subject=f"a{n}").fault for n in range(1000)]


def test_a_consent_that_is_over_is_over_for_every_call_of_its_account() -> None:
    ended = rules(FaultRule(fault=Fault.CONSENT_ENDED, ratio=0.5))
    told = {n: {plan(ended, subject=f"a{n}", ask=ask).fault for ask in range(5)} for n in range(50)}
    assert all(len(faults) == 1 for faults in told.values())
    assert {fault for faults in told.values() for fault in faults} == {None, Fault.CONSENT_ENDED}


def test_only_the_named_repeats_and_subjects_are_hit() -> None:
    first = rules(FaultRule(fault=Fault.TRUNCATED, asks=frozenset({0}), subjects=frozenset({"a"})))
    assert [plan(first, ask=ask).fault for ask in (0, 1)] == [Fault.TRUNCATED, None]
    assert plan(first, subject="b").fault is None


def test_a_slow_call_takes_its_latency_times_and_may_meet_one_fault_more() -> None:
    plain = plan(rules())
    slow = plan(rules(FaultRule(fault=Fault.SLOW, factor=2)))
    assert (slow.latency_s, slow.effect_after_s) == (2 * plain.latency_s, 2 * plain.effect_after_s)
    both = plan(rules(FaultRule(fault=Fault.SLOW, factor=3), FaultRule(fault=Fault.HANG)))
    assert (both.fault, both.latency_s) == (Fault.HANG, 3 * plain.latency_s)


def test_the_first_rule_that_hits_decides() -> None:
    two = rules(FaultRule(fault=Fault.HANG, to_s=5), FaultRule(fault=Fault.TRUNCATED))
    assert [plan(two, at_s=at_s).fault for at_s in (1, 6)] == [Fault.HANG, Fault.TRUNCATED]


def test_a_throttled_call_is_answered_at_once() -> None:
    throttled = plan(rules(FaultRule(fault=Fault.SCRIPTED_429, retry_after_s=4)))
    assert (throttled.status, throttled.latency_s, throttled.retry_after_s) == (429, 0, 4)

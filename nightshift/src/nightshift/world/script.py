"""What the world has in store for each call: its latency and its fault, decided before anyone asks."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, replace

from nightshift.world.chance import LognormalRule, choose, units
from nightshift.world.faults import FaultRule, hits
from nightshift.world.kinds import AGGREGATOR_KINDS, Fault, PathKind
from nightshift.world.limiter import RateLimit

SCRIPTED_RETRY_AFTER_S = 1
FAILURE_STATUSES = (500, 503, 504)


@dataclass(frozen=True, kw_only=True)
class WorldRules:
    """Everything that decides what the world answers; two worlds with equal rules answer alike.

    Attributes:
        seed: Seed of every draw.
        today: The world's date: newest booking day, and the day after which `date_from` lies in the future.
        rate_limit: The aggregator's rate limit.
        aggregator: Latency of the aggregator, seconds.
        gateway: Latency of the filing gateway, seconds.
        throttled_ratio: Share of the aggregator's calls that get a scripted 429, in [0, 1].
        failed_ratio: Share of the aggregator's calls that get a scripted 5xx, in [0, 1].
        page_size: Transactions on one page, at least 1.
        key_lifetime_s: How long a continuation key is known, seconds; None for as long as the world runs.
        consents_required: Only accounts of a session are answered; without it also those that no session names.
        faults: The script of faults; empty for none but the two shares above.

    Raises:
        ValueError: The two ratios do not fit into [0, 1], or a page holds nothing.
    """

    seed: int
    today: dt.date
    rate_limit: RateLimit = field(default_factory=lambda: RateLimit(calls_per_second=12, burst=6))
    aggregator: LognormalRule = field(default_factory=lambda: LognormalRule(median=2.5, sigma=0.7))
    gateway: LognormalRule = field(default_factory=lambda: LognormalRule(median=0.6, sigma=0.5))
    throttled_ratio: float = 0.01
    failed_ratio: float = 0.01
    page_size: int = 50
    key_lifetime_s: float | None = None
    consents_required: bool = False
    faults: tuple[FaultRule, ...] = ()

    def __post_init__(self) -> None:
        if min(self.throttled_ratio, self.failed_ratio) < 0 or self.throttled_ratio + self.failed_ratio > 1:
            raise ValueError(
                f"throttled ratio {self.throttled_ratio} and failed ratio {self.failed_ratio} "
                "must not be negative, and not above 1 together"
            )
        if self.page_size < 1:
            raise ValueError(f"page size {self.page_size}: a page holds at least 1 transaction")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What happens to one call that was let in.

    Attributes:
        latency_s: Seconds from being let in to the answer.
        fault: The scripted fault, or None.
        status: HTTP status of the fault; 200 without one.
        effect_after_s: Seconds from being let in until a submission takes effect, at most `latency_s`.
        retry_after_s: `Retry-After` of a scripted 429 or 5xx, whole seconds; None for none.
    """

    latency_s: float
    fault: Fault | None
    status: int
    effect_after_s: float
    retry_after_s: int | None = None


def plan_call(rules: WorldRules, kind: PathKind, *, subject: str, ask: int, at_s: float = 0.0) -> Plan:
    """Decide what happens to one call: drawn by chance, then changed by the script of faults.

    It depends on nothing but the arguments. `ask` counts only calls that the rate limit let in, so a
    caller that asks too fast meets the same latencies and faults as one that paces itself.

    Args:
        rules: The world's rules.
        kind: Endpoint.
        subject: Account id, or idempotency key.
        ask: How often this endpoint was asked for this subject before, from 0.
        at_s: Seconds since the world began to serve; only faults with a window look at it.

    Returns:
        The plan. A scripted 429 answers at once; a scripted 5xx takes its latency.
    """
    plan = _drawn(rules, kind, subject=subject, ask=ask)
    for number, rule in enumerate(rules.faults):
        if hits(rule, kind, subject=subject, ask=ask, at_s=at_s, chance=_chance(rules, number, kind, subject, ask)):
            plan = _changed(plan, rule)
            if rule.fault is not Fault.SLOW:  # a slow call may have another fault besides
                return plan
    return plan


def _chance(rules: WorldRules, number: int, kind: PathKind, subject: str, ask: int) -> float:
    # A consent is over, or it is not: that is drawn once an account, whatever is asked for and how often.
    if rules.faults[number].fault is Fault.CONSENT_ENDED:
        return units(rules.seed, "fault", number, subject)[0]
    return units(rules.seed, "fault", number, kind.value, subject, ask)[0]


def _changed(plan: Plan, rule: FaultRule) -> Plan:
    if rule.fault is Fault.SLOW:
        latency_s, effect_s = rule.factor * plan.latency_s, rule.factor * plan.effect_after_s
        return replace(plan, latency_s=latency_s, effect_after_s=effect_s, fault=plan.fault or Fault.SLOW)
    if rule.fault is Fault.SCRIPTED_429:
        plan = replace(plan, latency_s=0.0, effect_after_s=0.0)
    status = rule.status if rule.fault in (Fault.SCRIPTED_429, Fault.SCRIPTED_5XX) else 200
    return replace(plan, fault=rule.fault, status=status, retry_after_s=rule.retry_after_s)


def _drawn(rules: WorldRules, kind: PathKind, *, subject: str, ask: int) -> Plan:
    chance = units(rules.seed, "call", kind.value, subject, ask)
    if kind not in AGGREGATOR_KINDS:
        latency_s = rules.gateway.at(chance[0])
        return Plan(latency_s=latency_s, fault=None, status=200, effect_after_s=latency_s * chance[3])
    if chance[1] < rules.throttled_ratio:
        return Plan(
            latency_s=0.0,
            fault=Fault.SCRIPTED_429,
            status=429,
            effect_after_s=0.0,
            retry_after_s=SCRIPTED_RETRY_AFTER_S,
        )
    latency_s = rules.aggregator.at(chance[0])
    if chance[1] < rules.throttled_ratio + rules.failed_ratio:
        status = choose(FAILURE_STATUSES, chance[2])
        return Plan(latency_s=latency_s, fault=Fault.SCRIPTED_5XX, status=status, effect_after_s=latency_s)
    return Plan(latency_s=latency_s, fault=None, status=200, effect_after_s=latency_s)

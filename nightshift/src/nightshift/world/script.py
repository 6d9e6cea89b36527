"""What the world has in store for each call: its latency and its scripted fault, drawn before anyone asks."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from enum import StrEnum

from nightshift.world.chance import LognormalRule, choose, units
from nightshift.world.limiter import RateLimit

SCRIPTED_RETRY_AFTER_S = 1
FAILURE_STATUSES = (500, 503, 504)


class PathKind(StrEnum):
    """What a call asked for."""

    DETAILS = "details"
    BALANCES = "balances"
    TRANSACTIONS = "transactions"
    FILING_SUBMIT = "filing_submit"
    FILING_LOOKUP = "filing_lookup"
    OTHER = "other"


AGGREGATOR_KINDS = frozenset({PathKind.DETAILS, PathKind.BALANCES, PathKind.TRANSACTIONS})


class Fault(StrEnum):
    """Why a call got a 429 or a 5xx."""

    RATE_LIMIT = "rate_limit"
    """The rate limit refused it: it asked too fast."""
    SCRIPTED_429 = "scripted_429"
    """Let in, then throttled by the script."""
    SCRIPTED_5XX = "scripted_5xx"
    """Let in, then failed by the script after its latency."""


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
    page_size: int = 100

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
    """

    latency_s: float
    fault: Fault | None
    status: int
    effect_after_s: float


def plan_call(rules: WorldRules, kind: PathKind, *, subject: str, ask: int) -> Plan:
    """Draw what happens to one call.

    The draw depends on nothing but the arguments. `ask` counts only calls that the rate limit let in, so a
    caller that asks too fast meets the same latencies and faults as one that paces itself.

    Args:
        rules: The world's rules.
        kind: Endpoint.
        subject: Account id, or idempotency key.
        ask: How often this endpoint was asked for this subject before, from 0.

    Returns:
        The plan. A scripted 429 answers at once; a scripted 5xx takes its latency.
    """
    chance = units(rules.seed, "call", kind.value, subject, ask)
    if kind not in AGGREGATOR_KINDS:
        latency_s = rules.gateway.at(chance[0])
        return Plan(latency_s=latency_s, fault=None, status=200, effect_after_s=latency_s * chance[3])
    if chance[1] < rules.throttled_ratio:
        return Plan(latency_s=0.0, fault=Fault.SCRIPTED_429, status=429, effect_after_s=0.0)
    latency_s = rules.aggregator.at(chance[0])
    if chance[1] < rules.throttled_ratio + rules.failed_ratio:
        status = choose(FAILURE_STATUSES, chance[2])
        return Plan(latency_s=latency_s, fault=Fault.SCRIPTED_5XX, status=status, effect_after_s=latency_s)
    return Plan(latency_s=latency_s, fault=None, status=200, effect_after_s=latency_s)

"""The aggregator's rate limit as a pure function: a token bucket, as the generic cell rate algorithm."""

from __future__ import annotations

from dataclasses import dataclass

_ROUNDING_S = 1e-9  # sums of intervals are off by less; a call that is on time must not be refused for it


@dataclass(frozen=True, kw_only=True)
class RateLimit:
    """How many calls are let in.

    Attributes:
        calls_per_second: Sustained rate, calls a second; above 0.
        burst: Calls that may be let in at one instant after a pause; at least 1.

    Raises:
        ValueError: A number is outside its range.
    """

    calls_per_second: float
    burst: int

    def __post_init__(self) -> None:
        if not (self.calls_per_second > 0 and self.burst >= 1):
            raise ValueError(
                f"{self.calls_per_second} calls a second with a burst of {self.burst}: "
                "the rate must be above 0 and the burst at least 1"
            )

    @property
    def interval_s(self) -> float:
        """Seconds between two tokens."""
        return 1 / self.calls_per_second


@dataclass(frozen=True, kw_only=True)
class Admission:
    """What the rate limit said to one call.

    Attributes:
        granted: Whether the call was let in.
        arrival_s: Theoretical arrival time of the next call at the sustained rate: the next decision's state.
        retry_after_s: Seconds until a call would be let in; 0 when this one was.
    """

    granted: bool
    arrival_s: float
    retry_after_s: float


def admit(limit: RateLimit, arrival_s: float, *, now_s: float) -> Admission:
    """Decide whether a call is let in now (generic cell rate algorithm).

    In any span of T seconds no more than `burst + T * calls_per_second` calls are granted. A refused call
    costs nothing: it neither spends a token nor pushes the others back.

    Args:
        limit: Rate and burst.
        arrival_s: `Admission.arrival_s` of the decision before, in seconds on any steady clock; 0 at first.
        now_s: Now on the same clock.

    Returns:
        The admission, with the state for the next decision.

    Source: ITU-T I.371, annex A (virtual scheduling).
    """
    earliest_s = arrival_s - (limit.burst - 1) * limit.interval_s
    if now_s < earliest_s - _ROUNDING_S:
        return Admission(granted=False, arrival_s=arrival_s, retry_after_s=earliest_s - now_s)
    return Admission(granted=True, arrival_s=max(now_s, arrival_s) + limit.interval_s, retry_after_s=0.0)

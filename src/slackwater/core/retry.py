"""Retry policy: after an error, come again later, or not at all?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from slackwater.core.spans import minutes, seconds

Errors = tuple[type[BaseException], ...]
Chance = Callable[[], float]
"""Draws from [0, 1)."""


@dataclass(frozen=True)
class Backoff:
    """How often and how soon a failed job is tried again (exponential backoff with full jitter).

    Attributes:
        tries: Tries in all; 1 for no retry.
        base: Longest wait before the second try; it doubles with each.
        cap: Longest wait of all.
        jitter: Waits are drawn evenly between nothing and the longest, so that those who failed together do not come
            back together; False waits the longest.

    Raises:
        ValueError: A count or a span that cannot be.

    Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    """

    tries: int = 4
    base: timedelta = field(default_factory=lambda: seconds(1))
    cap: timedelta = field(default_factory=lambda: minutes(10))
    jitter: bool = True

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise ValueError(f"backoff: tries must be at least 1, not {self.tries}")
        if not timedelta(0) <= self.base <= self.cap:
            raise ValueError(f"backoff: base ({self.base}) must be between nothing and cap ({self.cap})")

    def longest(self, tries_done: int) -> timedelta:
        """Return the longest wait after so many tries (from 1)."""
        doublings = min(tries_done - 1, 40)  # beyond, any cap is reached, and a timedelta would overflow
        return min(self.cap, self.base * 2**doublings) if self.base else timedelta(0)


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """A lane's or a task's policy.

    Attributes:
        backoff: How often and how soon.
        retry_on: Kinds of errors that may pass by themselves; all others fail at once.
    """

    backoff: Backoff
    retry_on: Errors = (Exception,)


@dataclass(frozen=True, kw_only=True)
class Again:
    """The job is tried again.

    Attributes:
        after: How long from now (run clock).
        reason: Why.
    """

    after: timedelta
    reason: str


@dataclass(frozen=True, kw_only=True)
class GiveUp:
    """The job has failed.

    Attributes:
        reason: Why.
    """

    reason: str


def next_try(
    policy: RetryPolicy, error: BaseException, *, tries_done: int, chance: Chance, retry_after: timedelta | None = None
) -> Again | GiveUp:
    """Decide what becomes of a job whose body has raised.

    Args:
        policy: The task's, or its lane's.
        error: What it raised.
        tries_done: Tries that have ended, this one included.
        chance: For the jitter.
        retry_after: The wait that the peer asked for (`Retry-After`); it is kept even beyond the cap.
    """
    kind = type(error).__name__
    if not isinstance(error, policy.retry_on):
        return GiveUp(reason=f"{kind} is not to be retried")
    if tries_done >= policy.backoff.tries:
        return GiveUp(reason=f"{kind} at the last of {policy.backoff.tries} tries")
    longest = policy.backoff.longest(tries_done)
    after = longest * chance() if policy.backoff.jitter else longest
    if retry_after is not None and retry_after > after:
        return Again(after=retry_after, reason=f"{kind}; the peer asked for {retry_after.total_seconds():g} s")
    return Again(after=after, reason=f"{kind} at try {tries_done} of {policy.backoff.tries}")

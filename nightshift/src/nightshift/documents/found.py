"""A fact found on paper, with why it was chosen."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Found(Generic[T]):  # the short form needs Python 3.12; 3.11 is supported
    """A value and the reason for it.

    Attributes:
        value: What was found.
        reason: One clause for a person: which row, which rule.
        score: Certainty of the recogniser in the row it came from, 0 to 1; halved for a fallback.
    """

    value: T
    reason: str
    score: float

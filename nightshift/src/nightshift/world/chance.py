"""Counter-based chance: a draw is a hash of what it is drawn for, so the order of calls changes nothing."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeVar

T = TypeVar("T")

UNITS_PER_DRAW = 8
_STANDARD_NORMAL = NormalDist()


def units(seed: int, *subject: object) -> tuple[float, ...]:
    """Draw eight independent uniform numbers for one subject.

    Args:
        seed: The world's seed.
        *subject: What the numbers are drawn for; the text of each part is hashed.

    Returns:
        Eight floats inside (0, 1), the same ones whenever the seed and the subject are the same.
    """
    text = "\x1f".join([str(seed), *(str(part) for part in subject)])
    digest = hashlib.blake2b(text.encode(), digest_size=8 * UNITS_PER_DRAW).digest()
    return tuple(((word >> 11) + 0.5) / 2**53 for word in struct.unpack(f"<{UNITS_PER_DRAW}Q", digest))


def token(seed: int, *subject: object, digits: int) -> str:
    """Draw a string of decimal digits for one subject, at most 30 of them; the first one is never zero."""
    text = "\x1f".join([str(seed), "token", *(str(part) for part in subject)])
    number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")
    lowest: int = 10 ** (digits - 1)
    return str(lowest + number % (9 * lowest))


def choose(options: Sequence[T], unit: float) -> T:
    """Take the option that a unit number points at, all equally likely."""
    return options[int(unit * len(options))]


@dataclass(frozen=True, kw_only=True)
class LognormalRule:
    """A lognormal distribution by its median and the sigma of its logarithm.

    Attributes:
        median: Median, in the unit of the thing drawn; more than 0.
        sigma: Standard deviation of the natural logarithm; 0 makes every draw the median.

    Raises:
        ValueError: The median is not positive, or sigma is negative.
    """

    median: float
    sigma: float

    def __post_init__(self) -> None:
        if not (self.median > 0 and self.sigma >= 0):
            raise ValueError(f"median {self.median} must be above 0 and sigma {self.sigma} not below 0")

    def at(self, unit: float) -> float:
        """Return the quantile at a number inside (0, 1)."""
        return self.median * math.exp(self.sigma * _STANDARD_NORMAL.inv_cdf(unit))

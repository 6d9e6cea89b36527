"""Readings as areas over the night's clock. What is unknown is a gap, never zero."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby, pairwise
from statistics import median

from nightshift.report.scale import TimeScale
from slackwater import LaneReading

_SILENCE = 3
"""A pause of this many usual intervals between two readings is a gap too."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One known amount at an x, and the amount that it stands on."""

    x: float
    amount: float
    floor: float = 0.0


def stretches(samples: Sequence[Sample | None]) -> list[list[Sample]]:
    """Cut samples into stretches without a gap."""
    runs = (list(run) for known, run in groupby(samples, key=lambda sample: sample is not None) if known)
    return [[sample for sample in run if sample is not None] for run in runs]


def area(samples: Sequence[Sample | None], base: float, px_each: float) -> str:
    """Return a path that fills from floor to amount, one closed piece a stretch.

    Args:
        samples: In the order of x; None where the amount is not known.
        base: y of zero, px.
        px_each: px upwards for one (negative: downwards).
    """
    return "".join(_piece(stretch, base, px_each) for stretch in stretches(samples) if _has_any(stretch))


def edge(samples: Sequence[Sample | None], base: float, px_each: float) -> str:
    """Return a path along the amounts, one open line a stretch."""
    lines = (_line((one.x, base - one.amount * px_each) for one in stretch) for stretch in stretches(samples))
    return "".join(f"M{line}" for line in lines)


def _has_any(stretch: Iterable[Sample]) -> bool:
    return any(sample.amount > sample.floor for sample in stretch)


def _piece(stretch: Sequence[Sample], base: float, px_each: float) -> str:
    top = _line((one.x, base - one.amount * px_each) for one in stretch)
    bottom = _line((one.x, base - one.floor * px_each) for one in reversed(stretch))
    return f"M{top}L{bottom}Z"


def _line(points: Iterable[tuple[float, float]]) -> str:
    return "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def with_silences(readings: Sequence[LaneReading]) -> list[LaneReading | None]:
    """Put None where readings of one lane pause for longer than usual."""
    if len(readings) < 2:
        return list(readings)
    usual = timedelta(seconds=median((later.at - one.at).total_seconds() for one, later in pairwise(readings)))
    told: list[LaneReading | None] = [readings[0]]
    for one, later in pairwise(readings):
        if later.at - one.at > _SILENCE * usual:
            told.append(None)
        told.append(later)
    return told


def gaps(readings: Sequence[LaneReading | None], scale: TimeScale) -> list[tuple[float, float]]:
    """Return from where to where, in px, a lane's running work is not known between readings that know it.

    Args:
        readings: Of one lane, in the order of time, as `with_silences` returns them.
        scale: The night's clock.
    """
    found, last, is_open = [], None, False
    for reading in readings:
        if reading is None or reading.running is None:
            is_open = True
            continue
        x = scale.x_of_run(reading.at)
        if is_open and last is not None:
            found.append((last, x))
        last, is_open = x, False
    return found

"""The figures of the night: measured, with units; none of them decides whether the night was good."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import TypeVar

from nightshift.report.ledger import Ledger
from nightshift.report.night import Night
from nightshift.report.people import first_starts
from nightshift.world.books import Call
from nightshift.world.bound import in_order_bound_s, needed_calls, observed_span_s
from slackwater import JobState, LaneReading

_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, kw_only=True)
class Waits:
    """A distribution of waits, in seconds of real time; None where nobody waited to an end.

    Attributes:
        count: Waits that ended.
        unended: Waits that never did; they are in no quantile.
        p50_s: Median.
        p95_s: 95th percentile.
        max_s: Longest.
    """

    count: int
    unended: int
    p50_s: float | None = None
    p95_s: float | None = None
    max_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class FanOut:
    """How long a fan-out's calls took, and how long the peer's limit and latencies made them take at least."""

    parent: str
    call_count: int
    observed_s: float
    allowed_s: float

    @property
    def ratio(self) -> float | None:
        """Observed over allowed time; None where nothing was needed."""
        return self.observed_s / self.allowed_s if self.allowed_s else None


@dataclass(frozen=True, kw_only=True)
class LaneFigures:
    """What one lane did: bodies and jobs counted, peaks as read; None where there was no reading."""

    lane: str
    slots: int | None
    started: int
    finished: int
    expired: int
    peak_running: int | None
    peak_ready: int | None
    peak_oldest_s: float | None


@dataclass(frozen=True, kw_only=True)
class Figures:
    """All figures: people's waits, each fan-out, each lane."""

    click_to_start: Waits
    click_to_answer: Waits
    fan_outs: tuple[FanOut, ...]
    lanes: tuple[LaneFigures, ...]


def measure(night: Night, ledger: Ledger) -> Figures:
    """Measure the night."""
    first = first_starts(night.runs)
    starts = [(first[click.job].started_at - click.clicked_at) for click in night.clicks if click.job in first]
    answers = [(click.answered_at - click.clicked_at) for click in night.clicks if click.answered_at is not None]
    return Figures(
        click_to_start=waits((span.total_seconds() for span in starts), asked=len(night.clicks)),
        click_to_answer=waits((span.total_seconds() for span in answers), asked=len(night.clicks)),
        fan_outs=_fan_outs(night),
        lanes=_lanes(night, ledger),
    )


def waits(spans_s: Iterable[float], *, asked: int) -> Waits:
    """Sum up waits by quantiles (inclusive method: the data are all there is).

    Args:
        spans_s: Waits that ended, seconds.
        asked: How many there were, ended or not.
    """
    ended = sorted(spans_s)
    if not ended:
        return Waits(count=0, unended=asked)
    cuts = quantiles(ended, n=20, method="inclusive") if len(ended) > 1 else ended * 19
    return Waits(count=len(ended), unended=asked - len(ended), p50_s=cuts[9], p95_s=cuts[18], max_s=ended[-1])


def _fan_outs(night: Night) -> tuple[FanOut, ...]:
    parents = {demand.job: demand.parent for demand in night.demands if demand.parent is not None}
    calls: dict[str, list[Call]] = defaultdict(list)
    for call in night.calls:
        if (parent := parents.get(call.job_id or "")) is not None:
            calls[parent].append(call)
    measured = (_fan_out(parent, theirs, night=night) for parent, theirs in calls.items())
    return tuple(one for one in measured if one.call_count)


def _fan_out(parent: str, calls: Sequence[Call], *, night: Night) -> FanOut:
    limit = night.rate_limit
    return FanOut(
        parent=parent,
        call_count=len(needed_calls(calls)),
        observed_s=observed_span_s(calls),
        allowed_s=in_order_bound_s(calls, calls_per_second=limit.calls_per_second, burst=limit.burst),
    )


def _lanes(night: Night, ledger: Ledger) -> tuple[LaneFigures, ...]:
    started = Counter(run.lane for run in night.runs)
    finished = Counter(run.lane for run in night.runs if run.ended_at is not None)
    lane_of = {demand.job: demand.lane for demand in night.demands}
    expired = Counter(lane_of[job] for job, state in ledger.places.items() if state is JobState.EXPIRED)
    readings = by_lane(night.readings)
    return tuple(
        LaneFigures(
            lane=lane.name,
            slots=_peak(reading.slots for reading in readings.get(lane.name, ())),
            started=started[lane.name],
            finished=finished[lane.name],
            expired=expired[lane.name],
            peak_running=_peak(reading.running for reading in readings.get(lane.name, ())),
            peak_ready=_peak(reading.ready for reading in readings.get(lane.name, ())),
            peak_oldest_s=_peak(
                None if reading.oldest_age is None else reading.oldest_age.total_seconds()
                for reading in readings.get(lane.name, ())
            ),
        )
        for lane in night.lanes
    )


def _peak(values: Iterable[_Number | None]) -> _Number | None:
    return max((value for value in values if value is not None), default=None)


def by_lane(readings: Iterable[LaneReading]) -> Mapping[str, Sequence[LaneReading]]:
    """Sort readings into lanes, each in the order of time."""
    lanes: dict[str, list[LaneReading]] = defaultdict(list)
    for reading in sorted(readings, key=lambda reading: reading.at):
        lanes[reading.lane].append(reading)
    return lanes

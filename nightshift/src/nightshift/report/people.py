"""The check that no person waited behind a batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from nightshift.report.check import Check, check
from nightshift.report.night import Click, Demand, Night, Run
from nightshift.report.wording import count, night_clock


@dataclass(frozen=True, kw_only=True)
class _Elastic:
    """An elastic job in a lane: when it came, and when its bodies ran (run clock)."""

    job: str
    task: str
    published_at: datetime
    runs: Sequence[Run]


@dataclass(frozen=True, kw_only=True)
class _Wait:
    """A click, the first start of its job, when its message came, and its lane."""

    click: Click
    lane: str | None
    published_at: datetime
    started_at: datetime


def no_person_behind_a_batch(night: Night) -> Check:
    """Check for each click that, until its job started, no elastic job ran in its lane or stood ahead in its queue.

    A click whose job never started is an offender of its own.
    """
    first = first_starts(night.runs)
    elastic = _elastic_by_lane(night)
    demands = {demand.job: demand for demand in night.demands}
    evidence: list[str] = []
    for click in night.clicks:
        if (run := first.get(click.job)) is None:
            evidence.append(f"{_who(click, night)} never started")
            continue
        wait = _wait(click, run, demand=demands.get(click.job))
        evidence.extend(f"{_who(click, night)} {how}" for how in _behind(wait, elastic.get(wait.lane, ())))
    return check(
        "No person waited behind a batch",
        tuple(evidence),
        good=f"Between click and start of {count(len(night.clicks), 'submission')}, "
        "no elastic job ran in that lane or stood ahead in its queue.",
        bad=f"{count(len(evidence), 'time')} a person waited behind a batch, or for nothing.",
    )


def first_starts(runs: Iterable[Run]) -> Mapping[str, Run]:
    """Return each job's run that started first."""
    first: dict[str, Run] = {}
    for run in runs:
        if run.job not in first or run.started_at < first[run.job].started_at:
            first[run.job] = run
    return first


def _wait(click: Click, run: Run, *, demand: Demand | None) -> _Wait:
    published_at = run.published_at or (click.clicked_at if demand is None else demand.at)
    return _Wait(click=click, lane=run.lane, published_at=published_at, started_at=run.started_at)


def _elastic_by_lane(night: Night) -> Mapping[str | None, Sequence[_Elastic]]:
    runs: dict[str, list[Run]] = defaultdict(list)
    for run in night.runs:
        runs[run.job].append(run)
    asked = {demand.job: (demand.task, demand.lane, demand.at) for demand in night.demands if demand.elastic}
    for run in night.runs:
        if run.elastic:
            asked[run.job] = (run.task, run.lane, run.published_at or run.started_at)
    lanes: dict[str | None, list[_Elastic]] = defaultdict(list)
    for job, (task, lane, at) in asked.items():
        lanes[lane].append(_Elastic(job=job, task=task, published_at=at, runs=runs.get(job, ())))
    return lanes


def _behind(wait: _Wait, elastic: Iterable[_Elastic]) -> Iterable[str]:
    for other in elastic:
        if any(_overlaps(run, wait) for run in other.runs):
            yield f"waited while {other.job} {other.task} ran in {wait.lane}"
        elif other.published_at < wait.published_at and all(run.started_at >= wait.started_at for run in other.runs):
            yield f"waited behind {other.job} {other.task} in the queue of {wait.lane}"


def _overlaps(run: Run, wait: _Wait) -> bool:
    ends_in_time = run.ended_at is not None and run.ended_at <= wait.click.clicked_at
    return run.started_at < wait.started_at and not ends_in_time


def _who(click: Click, night: Night) -> str:
    at = night_clock(click.clicked_at, tempo=night.tempo, zone=night.zone)
    return f"{click.job} (run {click.run_id} of {click.tenant}, clicked {at})"

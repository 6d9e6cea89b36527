"""Gathering a finished night: the one place where the report asks the broker, the results, the stores and the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import select
from sqlalchemy.orm import Session

from nightshift import journal
from nightshift.books.attachments import reading_rates
from nightshift.books.models import AgentRun, Filing, Tenant
from nightshift.books.morning import morning_counts
from nightshift.chaos.strike import StrikeKind, Struck
from nightshift.people import PlannedClick
from nightshift.report.night import (
    Claim,
    Claimant,
    Click,
    Demand,
    DemandSource,
    Letter,
    Night,
    OwnFiling,
    ProcessUse,
    Restart,
    Run,
    Sweeping,
)
from nightshift.schedule import ZONE
from nightshift.world.books import read_calls, read_filings
from nightshift.world.limiter import RateLimit
from slackwater import JobState, Pool, Schedule, Slackwater
from slackwater.inspection import JobStates, open_messages


@dataclass(frozen=True, kw_only=True)
class Course:
    """What was planned for a night.

    Attributes:
        plan: Name of the schedule's plan.
        seed: Its seed.
        minutes: Its length, in minutes of real time.
        starts_at: First instant, calendar clock.
        ends_at: Last instant, calendar clock.
        clicks: The world's script.
        rate_limit: The aggregator's.
        world_books: The world's own books.
        journal: Folder of the journals.
    """

    plan: str
    seed: int
    minutes: float
    starts_at: datetime
    ends_at: datetime
    clicks: Sequence[PlannedClick]
    rate_limit: RateLimit
    world_books: Path
    journal: Path


def gather(sw: Slackwater, course: Course, *, session: Session, processes: Sequence[ProcessUse]) -> Night:
    """Collect all that is known of a night, once its workers have stopped and its servers still run."""
    events = list(journal.read(course.journal))
    demands = [*_scripted(course, sw), *_confirmed(events)]
    jobs = {demand.job for demand in demands}
    claims = list(_claims(sw, jobs))
    letters = list(_letters(sw, claims))
    claims += [Claim(job=one.job, state=one.state, claimant=Claimant.DEAD_LETTERS, detail=one.cause) for one in letters]
    tempo, store = sw.settings.tempo, sw.store
    margin = timedelta(seconds=60)
    accuracy = reading_rates(session)
    return Night(
        plan=course.plan,
        seed=course.seed,
        minutes=course.minutes,
        tempo=tempo,
        starts_at=course.starts_at,
        ends_at=course.ends_at,
        zone=ZoneInfo(ZONE),
        lanes=list(sw.lanes.values()),
        occurrences=store.occurrences.since(course.starts_at),
        due=due_instants(sw.schedule, since=course.starts_at, until=course.ends_at),
        readings=store.readings.between(tempo.run_at(course.starts_at) - margin, tempo.run_at(course.ends_at) + margin),
        demands=demands,
        claims=claims,
        runs=runs_of(events),
        clicks=_clicks(events, course.clicks, tenants=_tenants(session)),
        calls=read_calls(course.world_books),
        filings=read_filings(course.world_books),
        own_filings=[
            OwnFiling(run_id=one.run_id, key=one.key, filing_id=one.gateway_filing_id)
            for one in session.scalars(select(Filing).order_by(Filing.run_id))
        ],
        rate_limit=course.rate_limit,
        books=morning_counts(session, course.starts_at),
        accuracy=accuracy if accuracy.count else None,
        expired_reasons=Counter(claim.detail for claim in claims if claim.state is JobState.EXPIRED and claim.detail),
        processes=processes,
        letters=letters,
        restarts=list(_restarts(sw, demands)),
        sweepings=list(_sweepings(sw, events)),
        chaos=strikes_of(events),
    )


def due_instants(schedule: Schedule, *, since: datetime, until: datetime) -> list[tuple[str, datetime]]:
    """Return entry and due instant of each occurrence of (since, until], from the schedule alone."""
    return [
        (name, at)
        for name, entry in schedule.entries.items()
        for at in takewhile(lambda at: at <= until, entry.cadence.after(since, zone=schedule.zone_info))
    ]


def runs_of(events: Iterable[Mapping[str, Any]]) -> list[Run]:
    """Pair the journals' starts with their ends; a start without end was cut off."""
    ended: dict[str, list[tuple[datetime, str, str]]] = {}
    started: list[Mapping[str, Any]] = []
    for event in events:
        if event["event"] == journal.ENDED:
            ended.setdefault(event["job"], []).append(
                (_instant(event["at"]), event["state"], event.get("tried_again_for") or "")
            )
        elif event["event"] == journal.STARTED:
            started.append(event)
    starts: dict[str, list[Mapping[str, Any]]] = {}
    for event in sorted(started, key=lambda one: str(one["at"])):
        starts.setdefault(event["job"], []).append(event)
    return [run for job, tries in starts.items() for run in _paired(tries, sorted(ended.get(job, [])))]


def _paired(tries: Sequence[Mapping[str, Any]], ends: Sequence[tuple[datetime, str, str]]) -> Iterable[Run]:
    for number, event in enumerate(tries):
        at = _instant(event["at"])
        until = _instant(tries[number + 1]["at"]) if number + 1 < len(tries) else None
        end = next((one for one in ends if one[0] >= at and (until is None or one[0] <= until)), None)
        yield Run(
            job=event["job"],
            task=event["task"],
            lane=event["lane"],
            worker=event["worker"],
            started_at=at,
            published_at=_maybe(event["published_at"]),
            ended_at=end[0] if end else None,
            outcome=end[1] if end else "",
            elastic=bool(event["elastic"]),
            start_by=_maybe(event["start_by"]),
            tried_again_for=end[2] if end else "",
        )


def _scripted(course: Course, sw: Slackwater) -> list[Demand]:
    task = "submit_approved_run"
    return [
        Demand(
            job=click.job, task=task, lane=sw.lane_of(task), source=DemandSource.SCRIPT, at=sw.clock.run_at(click.at)
        )
        for click in course.clicks
    ]


def _confirmed(events: Iterable[Mapping[str, Any]]) -> list[Demand]:
    return [
        Demand(
            job=event["job"],
            task=event["task"],
            lane=event["lane"],
            source=DemandSource.PUBLISH,
            at=_instant(event["at"]),
            elastic=bool(event["elastic"]),
            parent=event["parent"],
        )
        for event in events
        if event["event"] == journal.PUBLISHED
    ]


def _claims(sw: Slackwater, jobs: set[str]) -> Iterable[Claim]:
    endings = sw.store.endings.find(sorted(jobs))
    duplicate_of = {
        job: ending.reason.partition(": ")[0] for job, ending in endings.items() if ending.state is JobState.DUPLICATE
    }
    # The jobs that duplicates are of may have been published where no confirmation came.
    others = set(duplicate_of.values()) - jobs
    endings = {**endings, **sw.store.endings.find(sorted(others))}
    ids = sorted(jobs | others)
    for job, ending in endings.items():
        yield Claim(
            job=job,
            state=ending.state,
            claimant=Claimant.ENDINGS,
            detail=str(ending.reason),
            of=duplicate_of.get(job),
        )
    for job, held in sw.store.holds.find(ids).items():
        yield Claim(job=job, state=JobState.HELD, claimant=Claimant.HOLDS, detail=held.reason)
    for job, state in JobStates(sw.app).states(ids).items():
        yield Claim(job=job, state=state, claimant=Claimant.RESULTS)
    messages = open_messages(sw.app)
    try:
        for job, queue in messages.waiting(list(sw.queues.values())).items():
            yield Claim(job=job, state=JobState.QUEUED, claimant=Claimant.QUEUE, detail=queue)
        for job in sorted(messages.unacknowledged() or ()):
            # Delivered; whether its body has started is told by the result.
            yield Claim(job=job, state=JobState.QUEUED, claimant=Claimant.UNACKNOWLEDGED)
    finally:
        messages.close()


def _letters(sw: Slackwater, claims: Iterable[Claim]) -> Iterable[Letter]:
    """Look up the dead letter of each job that did not just do its work."""
    well = {claim.job for claim in claims if claim.state in (JobState.DONE, JobState.DUPLICATE, JobState.EXPIRED)}
    for job in sorted({claim.job for claim in claims} - well):
        if (found := sw.store.dead_letters.get(job)) is not None:
            yield Letter(
                job=job,
                task=found.task,
                state=found.state,
                cause=found.cause,
                reason=found.reason,
                tries=found.tries,
                attempts=found.attempts,
            )


def _restarts(sw: Slackwater, demands: Iterable[Demand]) -> Iterable[Restart]:
    asked = {demand.job: demand for demand in demands}
    for job, run in sorted(sw.store.runs.runs(sorted(asked)).items()):
        lane = sw.lanes.get(asked[job].lane or "")
        if run.attempts > 1:
            yield Restart(
                job=job,
                task=asked[job].task,
                starts=run.attempts,
                is_childs=lane is not None and lane.pool is Pool.PREFORK,
            )


def _sweepings(sw: Slackwater, events: Iterable[Mapping[str, Any]]) -> Iterable[Sweeping]:
    rescued: dict[str, list[str]] = {}
    for event in events:
        if event["event"] == journal.SWEPT:
            rescued.setdefault(event["sweeper"], []).extend(event["things"])
    for sweep in sw.store.sweeps.all():
        yield Sweeping(
            sweeper=sweep.sweeper,
            at=sweep.at,
            found_count=sweep.found_count,
            recovered_count=sweep.recovered_count,
            note=sweep.note,
            error=sweep.error,
            rescued=tuple(rescued.get(sweep.sweeper, ())),
        )


def strikes_of(events: Iterable[Mapping[str, Any]]) -> list[Struck]:
    """Pair the journal's strikes with the recoveries of those that they hit, by moment."""
    events = list(events)
    recovered = {event["number"]: event for event in events if event["event"] == journal.RECOVERED}
    struck = [
        Struck(
            at=_instant(event["at"]),
            kind=StrikeKind(event["kind"]),
            target=event["target"],
            lasts=timedelta(seconds=event["lasts_s"]),
            effect=event["effect"],
            recovered_at=None if (back := recovered.get(event["number"])) is None else _instant(back["at"]),
            recovery="" if back is None else back["how"],
        )
        for event in events
        if event["event"] == journal.STRUCK
    ]
    return sorted(struck, key=lambda one: one.at)


def _clicks(
    events: Iterable[Mapping[str, Any]], planned: Sequence[PlannedClick], *, tenants: Mapping[int, str]
) -> list[Click]:
    clicked: dict[str, datetime] = {}
    answered: dict[str, datetime] = {}
    for event in events:
        if event["event"] == journal.CLICKED:
            clicked[event["job"]] = _instant(event["at"])
        elif event["event"] == journal.ANSWERED:
            answered[event["job"]] = _instant(event["at"])
    return [
        Click(
            job=one.job,
            run_id=one.run_id,
            tenant=tenants.get(one.run_id, ""),
            clicked_at=clicked[one.job],
            answered_at=answered.get(one.job),
        )
        for one in planned
        if one.job in clicked
    ]


def _tenants(session: Session) -> dict[int, str]:
    query = select(AgentRun.id, Tenant.name).join(Tenant, Tenant.id == AgentRun.tenant_id)
    return {row[0]: row[1] for row in session.execute(query)}


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _maybe(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)

"""Chaos's place in a night: who is struck and when, and the wait until what was struck has settled."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from nightshift.chaos.chaos import Chaos, Targets
from nightshift.chaos.links import Links
from nightshift.chaos.plan import Cast, draw
from nightshift.journal import PUBLISHED, Journal, read
from nightshift.people import PlannedClick
from nightshift.report.gather import due_instants
from nightshift.report.wording import some_of
from nightshift.stage import JOURNAL, Stage
from slackwater import Pool, Slackwater
from slackwater.inspection import JobStates
from slackwater.local import Child, ServerPlan

BALANCER = "balancer"
SETTLES_WITHIN = timedelta(seconds=90)
"""How long after its end a night waits for work that is open still: a lease that lapses, a retry's longest wait."""
LOOK_EVERY = timedelta(milliseconds=500)
SHOWN = 3


def stage_chaos(
    stage: Stage, sw: Slackwater, *, children: Mapping[str, Child], servers: ServerPlan, links: Links | None
) -> Chaos:
    """Draw a night's strikes and get them ready; none at all without links.

    Args:
        stage: The night.
        sw: The application, for its clock and lanes.
        children: Its processes that may be struck, by name.
        servers: Its servers; those that are given are left alone.
        links: What its processes reach their servers through; None for a night without chaos.
    """
    tempo, span = sw.settings.tempo, stage.span
    begins_at, ends_at = tempo.run_at(span.starts_at), tempo.run_at(span.ends_at)
    proxies = {} if links is None else links.proxies
    cast = Cast(
        workers=tuple(name for name in children if name != BALANCER),
        forking=tuple(worker_of(lane.name) for lane in sw.lanes.values() if lane.pool is Pool.PREFORK),
        balancers=(BALANCER,),
        servers=servers.own,
        links=tuple(proxies),
    )
    return Chaos(
        strikes=() if links is None else draw(cast, seed=stage.options.seed, span=ends_at - begins_at),
        begins_at=begins_at,
        targets=Targets(
            children=children,
            links=proxies,
            servers=servers.own,
            start_server=servers.start_again,
            supervisor=stage.supervisor,
        ),
        journal=Journal(stage.folder.path / JOURNAL),
        tell=lambda line: stage.console.print(line, soft_wrap=True, highlight=False, markup=False),
    )


def worker_of(lane: str) -> str:
    """Return the name of the process that is a lane's worker."""
    return f"worker-{lane}"


def wait_until_settled(
    stage: Stage, sw: Slackwater, clicks: Sequence[PlannedClick], *, chaos: Chaos, go_on: Callable[[], None]
) -> None:
    """Wait until nothing is away and no demanded job is open, or the bound is over.

    Args:
        stage: The night.
        sw: The application.
        clicks: The script of clicks.
        chaos: Its chaos, which brings back what is away still.
        go_on: Raises where the night must end.
    """
    until = time.monotonic() + SETTLES_WITHIN.total_seconds()
    open_work: Sequence[str] = ("somebody is away",)
    while open_work and time.monotonic() < until:
        go_on()
        chaos.step(sw.clock.run())
        if chaos.is_over:
            open_work = (*open_occurrences(stage, sw), *open_jobs(stage, sw, clicks))
        stage.stop.wait(LOOK_EVERY)
    if open_work:
        line = f"note: not settled within {SETTLES_WITHIN.seconds} s: {', '.join(some_of(tuple(open_work), SHOWN))}"
        stage.console.print(line, soft_wrap=True, highlight=False, markup=False)


def open_occurrences(stage: Stage, sw: Slackwater) -> Sequence[str]:
    """Return the due occurrences that are not recorded, or have not ended."""
    span, recorded = stage.span, sw.store.occurrences.since(stage.span.starts_at)
    ended = {(one.entry, one.due_at) for one in recorded if one.state.final}
    due = due_instants(sw.schedule, since=span.starts_at, until=span.ends_at)
    return [f"occurrence {entry} due {at:%H:%M} UTC" for entry, at in due if (entry, at) not in ended]


def open_jobs(stage: Stage, sw: Slackwater, clicks: Sequence[PlannedClick]) -> Sequence[str]:
    """Return the demanded jobs that have not ended."""
    published = {event["job"] for event in read(stage.folder.path / JOURNAL) if event["event"] == PUBLISHED}
    jobs = sorted(published | {click.job for click in clicks})
    states = JobStates(sw.app).states(jobs)
    return [f"job {job}" for job in jobs if job not in states or not states[job].final]

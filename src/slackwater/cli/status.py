"""`slackwater status`: each lane now, the workers, and the latest occurrences."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import click
from rich.console import Console

from slackwater.app import Slackwater
from slackwater.cli.balancer import probe_of
from slackwater.cli.main import load_shared
from slackwater.cli.tables import print_table
from slackwater.core.canary import Canary
from slackwater.core.dead_letter import Pause
from slackwater.core.occurrence import Occurrence
from slackwater.core.reading import LaneReading, Presence
from slackwater.errors import ConfigurationError

LOOK_BACK = timedelta(hours=24)
LANE_HEADS = ("lane", "ready", "unacked", "running", "slots", "workers", "oldest", "waits on")
OCCURRENCE_HEADS = ("due", "entry", "state", "jobs", "why")


@dataclass(frozen=True, kw_only=True)
class Status:
    """What `status` shows."""

    now: datetime
    readings: Sequence[LaneReading]
    workers: Sequence[Presence]
    pauses: Mapping[str, Pause]
    occurrences: Sequence[Occurrence]
    canaries: Mapping[str, Canary]
    findings: Sequence[str]
    notes: Sequence[str]


@click.command(name="status", help="Show each lane now, its workers, and the occurrences of the last 24 hours.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document for machines.")
@click.pass_context
def command(context: click.Context, *, as_json: bool) -> None:
    """Read and print the status."""
    sw = load_shared(context)
    sw.store.check()
    status = read(sw)
    if as_json:
        click.echo(json.dumps(to_json(sw, status), indent=2))
    else:
        show(sw, status, Console())


def read(sw: Slackwater) -> Status:
    """Read everything once; what does not answer is unknown."""
    return Status(
        now=sw.clock.run(),
        readings=probe_of(sw).read(),
        workers=sw.store.presence.all(),
        pauses={one.lane: one for one in sw.store.dead_letters.pauses()},
        occurrences=sw.store.occurrences.since(sw.clock.calendar() - LOOK_BACK),
        canaries={one.lane: one for one in sw.store.canaries.all()},
        findings=_findings(sw),
        notes=sw.notes(),
    )


def _findings(sw: Slackwater) -> Sequence[str]:
    """Return what keeps workers and balancer from starting; a status is wanted all the same."""
    try:
        sw.check()
    except ConfigurationError as error:
        return error.findings
    return ()


def to_json(sw: Slackwater, status: Status) -> dict[str, Any]:
    """Return the status in plain JSON types; unknown is null."""
    return {
        "at": status.now.isoformat(),
        "calendar": sw.clock.calendar().isoformat(),
        "lanes": {reading.lane: _lane_json(sw, reading, status) for reading in status.readings},
        "workers": [
            {
                "worker": one.worker,
                "host": one.host,
                "pid": one.pid,
                "alive": one.alive(status.now),
                "refreshed_at": one.refreshed_at.isoformat(),
                "lanes": list(one.lanes),
            }
            for one in status.workers
        ],
        "findings": list(status.findings),
        "notes": list(status.notes),
        "occurrences": [_occurrence_json(one) for one in status.occurrences],
    }


def _lane_json(sw: Slackwater, reading: LaneReading, status: Status) -> dict[str, Any]:
    lane = sw.lanes[reading.lane]
    living = [one.lanes[lane.name] for one in status.workers if one.alive(status.now) and lane.name in one.lanes]
    pause, expired = status.pauses.get(lane.name), dict[str, int]()
    for counts in living:
        for reason, count in counts.expired.items():
            expired[reason] = expired.get(reason, 0) + count
    return {
        "ready": reading.ready,
        "unacked": reading.unacked,
        "running": reading.running,
        "slots": reading.slots,
        "workers": reading.workers,
        "answered_at": _answered_at(status.canaries.get(reading.lane)),
        "oldest_age_s": None if reading.oldest_age is None else reading.oldest_age.total_seconds(),
        "started": sum(counts.started for counts in living),
        "finished": sum(counts.finished for counts in living),
        "failed": sum(counts.failed for counts in living),
        "expired": expired,
        "protected": lane.protected,
        "pool": str(lane.pool),
        "niceness": lane.niceness,
        "paused": None if pause is None else {"until": pause.until.isoformat(), "reason": pause.reason},
        "waits_on": [resource.name for resource in lane.waits_on],
    }


def _answered_at(canary: Canary | None) -> str | None:
    return None if canary is None or canary.answered_at is None else canary.answered_at.isoformat()


def _occurrence_json(one: Occurrence) -> dict[str, Any]:
    return {
        "id": str(one.id),
        "entry": one.entry,
        "due_at": one.due_at.isoformat(),
        "start_by": one.start_by.isoformat(),
        "state": one.state.value,
        "reason": one.reason,
        "jobs": {state.value: count for state, count in one.jobs.items()},
    }


def show(sw: Slackwater, status: Status, console: Console) -> None:
    """Print the status as tables."""
    print_table(console, LANE_HEADS, [_lane_row(sw, reading) for reading in status.readings])
    for pause in status.pauses.values():
        console.print(
            f"lane {pause.lane} is paused until {pause.until:%H:%M:%S} UTC: {pause.reason}; "
            f"slackwater dead list --lane {pause.lane}, then slackwater dead resume {pause.lane}",
            soft_wrap=True,
            markup=False,
            highlight=False,
        )
    for line in _unanswered(sw, status):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    for finding in status.findings:
        console.print(f"workers and balancer refuse to start: {finding}", soft_wrap=True, markup=False, highlight=False)
    for note in status.notes:
        console.print(f"note: {note}", soft_wrap=True, markup=False, highlight=False)
    silent = [one.worker for one in status.workers if not one.alive(status.now)]
    if silent:
        console.print(f"silent workers: {', '.join(silent)}")
    if not status.occurrences:
        console.print("no occurrence in the last 24 hours")
        return
    print_table(console, OCCURRENCE_HEADS, [_occurrence_row(sw, one) for one in status.occurrences])


def _lane_row(sw: Slackwater, reading: LaneReading) -> list[str]:
    lane = sw.lanes[reading.lane]
    return [
        lane.name + (" (protected)" if lane.protected else ""),
        *map(_count, (reading.ready, reading.unacked, reading.running, reading.slots, reading.workers)),
        _age(reading.oldest_age),
        ", ".join(resource.name for resource in lane.waits_on),
    ]


def _occurrence_row(sw: Slackwater, one: Occurrence) -> list[str]:
    due = one.due_at.astimezone(sw.schedule.zone_info).strftime("%a %H:%M")
    jobs = ", ".join(f"{count} {state}" for state, count in one.jobs.items())
    return [due, one.entry, one.state, jobs, one.reason or ""]


def _unanswered(sw: Slackwater, status: Status) -> list[str]:
    """Name the lanes that should have run their canary by now."""
    return [
        f"lane {one.lane} does not answer: its canary has waited since {one.sent_at:%H:%M:%S}Z; "
        "its workers are stuck, or its queue is longer than they can take"
        for one in status.canaries.values()
        if one.lane in sw.lanes and one.silent(status.now, within=sw.settings.canary_within)
    ]


def _count(value: int | None) -> str:
    return "unknown" if value is None else str(value)


def _age(value: timedelta | None) -> str:
    return "" if value is None else f"{value.total_seconds():.1f} s"

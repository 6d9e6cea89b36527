"""The report for machines: one JSON object with stable keys; times in ISO 8601."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nightshift.chaos.strike import Struck
from nightshift.report.check import Check
from nightshift.report.checks import Report
from nightshift.report.figures import FanOut, Waits
from nightshift.report.people_waits import LIMIT_S
from slackwater import Occurrence, Tempo


class ReportUnwritable(Exception):
    """A report cannot be written; the sentence says where, why, and what to do."""


def to_json(report: Report) -> dict[str, Any]:
    """Return the report as plain JSON types; evidence is whole, nothing is cut."""
    night, ledger, figures = report.night, report.ledger, report.figures
    return {
        "ok": report.ok,
        "plan": night.plan,
        "seed": night.seed,
        "minutes": night.minutes,
        "starts_at": night.starts_at.isoformat(),
        "ends_at": night.ends_at.isoformat(),
        "zone": night.zone.key,
        "jobs": {
            "submitted": ledger.submitted,
            **{state.value: number for state, number in ledger.counts.items()},
            "lost": len(ledger.lost),
            "twice": report.twice,
        },
        "realtime": {"limit_s": LIMIT_S, **_waits(figures.click_to_start), "answer": _waits(figures.click_to_answer)},
        "lanes": {
            lane.lane: {key: value for key, value in asdict(lane).items() if key != "lane"} for lane in figures.lanes
        },
        "occurrences": [_occurrence(one, night.tempo) for one in night.occurrences],
        "checks": [_check(check) for check in report.checks],
        "figures": {
            "fan_outs": [_fan_out(one) for one in figures.fan_outs],
            "accuracy": None if night.accuracy is None else asdict(night.accuracy),
            "books": asdict(night.books),
            "processes": [asdict(use) for use in night.processes],
        },
        "dead_letters": [asdict(one) for one in night.letters],
        "duplicates": [{"job": one.job, "of": one.of} for one in ledger.duplicates],
        "restarts": [asdict(one) for one in night.restarts],
        "sweepers": [{**asdict(one), "at": one.at.isoformat()} for one in night.sweepings],
        "chaos": [_struck(one, night.tempo) for one in night.chaos],
        "expired_reasons": dict(sorted(night.expired_reasons.items())),
    }


def _check(check: Check) -> dict[str, Any]:
    return {**asdict(check), "evidence": list(check.evidence), "notes": list(check.notes)}


def _waits(waits: Waits) -> dict[str, Any]:
    return {
        "count": waits.count,
        "unended": waits.unended,
        "p50_s": waits.p50_s,
        "p95_s": waits.p95_s,
        "max_s": waits.max_s,
    }


def _fan_out(one: FanOut) -> dict[str, Any]:
    return {**asdict(one), "ratio": one.ratio}


def _struck(one: Struck, tempo: Tempo) -> dict[str, Any]:
    back = one.recovered_at
    return {
        "at": one.at.isoformat(),
        "night_at": tempo.calendar_at(one.at).isoformat(),
        "kind": one.kind.value,
        "target": one.target,
        "lasts_s": one.lasts.total_seconds(),
        "effect": one.effect,
        "recovered": back is not None,
        "recovered_after_s": None if back is None else (back - one.at).total_seconds(),
        "recovery": one.recovery,
    }


def _occurrence(one: Occurrence, tempo: Tempo) -> dict[str, Any]:
    told = {"started_at": one.started_at, "ended_at": one.ended_at}
    return {
        "id": str(one.id),
        "entry": one.entry,
        "lane": one.lane,
        "elastic": one.elastic,
        "state": one.state.value,
        "reason": one.reason,
        "due_at": one.due_at.isoformat(),
        "start_by": one.start_by.isoformat(),
        **{key: None if run is None else tempo.calendar_at(run).isoformat() for key, run in told.items()},
        "jobs": {state.value: number for state, number in one.jobs.items()},
    }


def write_json(report: Report, path: Path) -> None:
    """Write the report to a file, whole or not at all (temporary file, then rename); safe to repeat.

    Raises:
        ReportUnwritable: The path cannot be written.
    """
    write_whole(path, json.dumps(to_json(report), indent=2, ensure_ascii=False) + "\n")


def write_whole(path: Path, content: str) -> None:
    """Write a text file, whole or not at all; safe to repeat.

    Raises:
        ReportUnwritable: The path cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as draft:
            draft.write(content)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> ReportUnwritable:
    why = error.strerror or str(error)
    return ReportUnwritable(f"cannot write the report to {path}: {why}; give a file in a folder that you may write to")

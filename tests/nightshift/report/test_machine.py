import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from nightshift.report.checks import Report, run_checks
from nightshift.report.machine import ReportUnwritable, to_json, write_json
from nightshift.report.night import Night

JOBS = ["submitted", "held", "queued", "running", "done", "expired", "failed", "dead", "revoked", "duplicate", "lost"]


def test_the_report_has_its_keys(report: Report) -> None:
    told = to_json(report)
    assert {"ok", "jobs", "realtime", "lanes", "occurrences", "checks", "figures"} <= told.keys()
    assert {"plan", "seed", "minutes", "expired_reasons"} <= told.keys()
    assert [*told["jobs"]] == [*JOBS, "twice"]
    assert {"count", "p50_s", "p95_s", "max_s"} <= told["realtime"].keys()
    assert told["ok"] is True


def test_the_jobs_add_up(report: Report) -> None:
    jobs = to_json(report)["jobs"]
    assert jobs["submitted"] == sum(jobs[name] for name in JOBS[1:]) > 0


def test_evidence_is_whole(night: Night) -> None:
    told = to_json(run_checks(replace(night, claims=[])))
    assert told["ok"] is False
    assert len(told["checks"][0]["evidence"]) == told["jobs"]["lost"] == len(night.demands)


def test_times_are_iso_with_an_offset(report: Report) -> None:
    for occurrence in to_json(report)["occurrences"]:
        for key in ("due_at", "start_by"):
            assert datetime.fromisoformat(occurrence[key]).tzinfo is not None


def test_what_is_written_is_what_is_told(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "night.json"
    path.write_text("an older one")
    write_json(report, path)
    assert json.loads(path.read_text(encoding="utf-8")) == to_json(report)
    assert [one.name for one in tmp_path.iterdir()] == ["night.json"]


@pytest.mark.parametrize("where", ["missing/night.json", "."])
def test_a_path_that_cannot_be_written_is_one_clear_line_and_leaves_nothing(
    report: Report, tmp_path: Path, where: str
) -> None:
    with pytest.raises(ReportUnwritable) as refused:
        write_json(report, tmp_path / where)
    assert "cannot write the report to" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []

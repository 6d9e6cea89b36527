"""Pairing starts with ends, and the due instants of a schedule."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from nightshift import journal
from nightshift.course import span_of
from nightshift.report.gather import due_instants, runs_of
from nightshift.schedule import schedule
from nightshift.settings import Plan

ZERO = datetime(2026, 11, 29, 20, 0, tzinfo=UTC)


def at(second: float) -> datetime:
    return ZERO + timedelta(seconds=second)


def started(job: str, second: float, worker: str = "one@host") -> Mapping[str, Any]:
    return {
        "event": journal.STARTED,
        "at": at(second).isoformat(),
        "job": job,
        "task": "extract_data_from_attachment",
        "worker": worker,
        "lane": "transaction_postprocess",
        "published_at": at(0).isoformat(),
        "start_by": None,
        "elastic": True,
    }


def ended(job: str, second: float, state: str = "SUCCESS") -> Mapping[str, Any]:
    return {"event": journal.ENDED, "at": at(second).isoformat(), "job": job, "state": state}


def test_a_start_and_an_end_are_one_run() -> None:
    [run] = runs_of([started("a", 1), ended("a", 3)])
    assert (run.job, run.started_at, run.ended_at, run.outcome) == ("a", at(1), at(3), "SUCCESS")
    assert (run.published_at, run.start_by, run.elastic) == (at(0), None, True)


def test_a_start_without_an_end_was_cut_off() -> None:
    [run] = runs_of([started("a", 1)])
    assert (run.ended_at, run.outcome) == (None, "")


def test_a_redelivered_job_has_two_runs_and_the_first_was_cut_off() -> None:
    first, second = runs_of([started("a", 1, "killed@host"), started("a", 5, "other@host"), ended("a", 9)])
    assert (first.worker, first.started_at, first.ended_at) == ("killed@host", at(1), None)
    assert (second.worker, second.started_at, second.ended_at) == ("other@host", at(5), at(9))


def test_files_are_read_in_any_order() -> None:
    events = [ended("a", 9), started("b", 2), ended("a", 4, "RETRY"), started("a", 5), ended("b", 8), started("a", 1)]
    runs = {(run.job, run.started_at): (run.ended_at, run.outcome) for run in runs_of(events)}
    assert runs == {
        ("a", at(1)): (at(4), "RETRY"),
        ("a", at(5)): (at(9), "SUCCESS"),
        ("b", at(2)): (at(8), "SUCCESS"),
    }


def test_an_end_without_a_start_is_no_run() -> None:
    assert runs_of([ended("a", 3)]) == []


@pytest.mark.parametrize(("plan", "sweep"), [(Plan.SHIFTED, "03:30"), (Plan.COLLIDE, "01:10")])
def test_each_entry_is_due_once_a_night_at_the_plans_hour(plan: Plan, sweep: str) -> None:
    span = span_of(date(2026, 11, 29))
    due = dict(due_instants(schedule(plan), since=span.starts_at, until=span.ends_at))
    assert {entry: f"{instant.astimezone(UTC):%H:%M}" for entry, instant in due.items()} == {
        "update_all_transactions": "01:00",
        "update_all_transactions_again": "05:30",
        "update_accounts": "02:15",
        "categorize_uncategorized_transactions": sweep,
    }


@pytest.mark.parametrize("day", [date(2026, 3, 29), date(2026, 10, 25)])
@pytest.mark.parametrize("plan", list(Plan))
def test_a_clock_change_neither_drops_nor_doubles_an_entry(day: date, plan: Plan) -> None:
    span = span_of(day)
    due = due_instants(schedule(plan), since=span.starts_at, until=span.ends_at)
    assert sorted(entry for entry, _ in due) == [
        "categorize_uncategorized_transactions",
        "update_accounts",
        "update_all_transactions",
        "update_all_transactions_again",
    ]

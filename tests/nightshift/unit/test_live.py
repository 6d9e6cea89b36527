"""What is shown of a night while it runs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from rich.console import Console

from nightshift.course import Span
from nightshift.live import MARKS, line, picture
from slackwater import LaneReading, OccurrenceState

NOW = datetime(2026, 11, 29, 1, 4, tzinfo=UTC)
SPAN = Span(starts_at=NOW - timedelta(minutes=34), ends_at=NOW + timedelta(hours=6))
UNKNOWN = LaneReading(at=NOW, lane="transaction_sync")
KNOWN = replace(UNKNOWN, running=37, ready=0, slots=64, oldest_age=timedelta(seconds=2.25))


def shown(*readings: LaneReading, calendar: datetime = NOW, width: int = 100) -> str:
    console = Console(width=width, record=True, file=StringIO())
    console.print(picture(calendar, readings, [], span=SPAN, width=width))
    return console.export_text()


def test_a_line_tells_the_time_in_berlin_and_each_lanes_jobs() -> None:
    assert line(NOW, [KNOWN], []) == "02:04  transaction_sync 37 running 0 waiting"


def test_a_reading_that_is_unknown_is_shown_as_such_and_never_as_zero() -> None:
    assert line(NOW, [UNKNOWN], []) == "02:04  transaction_sync ? running ? waiting"
    [row] = [row for row in shown(UNKNOWN).splitlines() if "transaction_sync" in row]
    assert row.split() == ["transaction_sync", "unknown", "?", "?"]


def test_the_screen_shows_slots_in_use_and_the_oldest_waiting_job() -> None:
    [row] = [row for row in shown(KNOWN).splitlines() if "transaction_sync" in row]
    assert "████████████········ of 64" in row
    assert row.rstrip().endswith("37       0        2.2 s")


@pytest.mark.parametrize("hours", [-5, 0, 12])
def test_the_screen_stands_before_during_and_after_the_night(hours: int) -> None:
    assert "Berlin" in shown(KNOWN, calendar=NOW + timedelta(hours=hours))


def test_a_lane_without_slots_is_drawn_empty() -> None:
    assert "···················· of 0" in shown(replace(KNOWN, slots=0, running=0))


def test_each_state_of_an_occurrence_has_a_mark() -> None:
    assert set(MARKS) == set(OccurrenceState)


def test_a_narrow_screen_keeps_one_row_a_lane() -> None:
    rows = [row for row in shown(KNOWN, replace(KNOWN, lane="submissions"), width=60).splitlines() if row.strip()]
    assert [row.split()[0] for row in rows[-2:]] == ["transaction_sync", "submissions"]
    assert "████·· of 64" in rows[-2] or "███··· of 64" in rows[-2]
    assert rows[-1].rstrip().endswith("37       0        2.2 s")

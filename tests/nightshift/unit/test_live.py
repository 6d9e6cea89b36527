"""What is shown of a night while it runs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from uuid import UUID

import pytest
from celery import Celery
from rich.console import Console

from nightshift.course import Span
from nightshift.live import MARKS, Screen, line, picture, silences
from slackwater import Lane, LaneReading, OccurrenceState, Presence, Settings, Slackwater, Tempo

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


def test_a_worker_that_is_silent_for_longer_than_its_presence_counts_is_named_with_the_hour() -> None:
    alive = presence("till@here", refreshed_at=NOW)
    hangs = presence("agent_realtime@here", refreshed_at=NOW - timedelta(seconds=11))
    app = Celery("quiet", broker="memory://", backend="cache+memory://", set_as_current=False)
    sw = Slackwater(app, store="memory://", lanes=[Lane("till", slots=1)])
    assert silences([alive, hangs], sw, now=NOW) == [
        "worker agent_realtime@here is silent since 02:03 (pid 7): it hangs, or cannot reach the store"
    ]


def test_what_is_shown_ends_with_the_night_and_tells_of_a_silence_once() -> None:
    out = StringIO()
    app = Celery("late", broker="memory://", backend="cache+memory://", set_as_current=False)
    later = Tempo(run_origin=NOW, calendar_origin=NOW + timedelta(days=9), rate=1e-9)
    sw = Slackwater(app, store="memory://", lanes=[Lane("till", slots=1)], settings=Settings(tempo=later))
    sw.store.presence.refresh(presence("till@here", refreshed_at=datetime.now(UTC) - timedelta(minutes=1)))
    screen = Screen(Console(file=out, width=100), sw, Span(starts_at=NOW - timedelta(hours=2), ends_at=NOW))
    for _ in range(2):
        screen._next_line = 0.0
        screen.show()
    told = out.getvalue().splitlines()
    assert [row.split()[0] for row in told if "running" in row] == ["02:04", "02:04"]
    assert sum("till@here is silent since" in row for row in told) == 1


def presence(worker: str, *, refreshed_at: datetime) -> Presence:
    return Presence(
        worker=worker,
        boot=UUID(int=1),
        host="here",
        pid=7,
        started_at=refreshed_at,
        refreshed_at=refreshed_at,
        lives_for=timedelta(seconds=10),
        lanes={},
    )


def test_a_lane_without_slots_is_drawn_empty() -> None:
    assert "···················· of 0" in shown(replace(KNOWN, slots=0, running=0))


def test_each_state_of_an_occurrence_has_a_mark() -> None:
    assert set(MARKS) == set(OccurrenceState)


@pytest.mark.parametrize("width", [20, 30, 40, 50, 60, 65, 79, 80])
def test_no_number_is_cut_and_nothing_runs_over_however_narrow_the_screen_is(width: int) -> None:
    lanes = [replace(KNOWN, lane=name) for name in ("transaction_sync", "transaction_postprocess", "agent_realtime")]
    lanes = [replace(one, running=12345, ready=67890, slots=99999) for one in lanes]
    text = shown(*lanes, width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "…" not in text
    assert (text.count("12345"), text.count("67890")) == (3, 3)
    assert not any("━" in line and line.strip("━╸╺ ") for line in text.splitlines())


def test_a_narrow_screen_keeps_one_row_a_lane() -> None:
    rows = [row for row in shown(KNOWN, replace(KNOWN, lane="submissions"), width=60).splitlines() if row.strip()]
    assert [row.split()[0] for row in rows[-2:]] == ["transaction_sync", "submissions"]
    assert "████·· of 64" in rows[-2] or "███··· of 64" in rows[-2]
    assert rows[-1].rstrip().endswith("37       0        2.2 s")

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from slackwater.core.tempo import Tempo

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
NIGHT = datetime(2026, 11, 30, 0, 30, tzinfo=UTC)
FAST = Tempo(run_origin=NOON, calendar_origin=NIGHT, rate=97.5)


def test_in_production_both_clocks_are_one() -> None:
    assert Tempo.real().calendar_at(NOON) == NOON
    assert Tempo.real().run_at(NIGHT) == NIGHT


def test_a_compressed_night_runs_the_calendar_faster() -> None:
    assert FAST.calendar_at(NOON + timedelta(minutes=4)) == NIGHT + timedelta(minutes=390)
    assert FAST.run_at(NIGHT + timedelta(minutes=390)) == NOON + timedelta(minutes=4)
    assert FAST.run_span(timedelta(minutes=390)) == timedelta(minutes=4)


def test_a_tempo_is_read_from_what_it_wrote() -> None:
    assert str(FAST) == "2026-11-29T12:00:00+00:00/2026-11-30T00:30:00+00:00/97.5"
    assert Tempo.parse(str(FAST)) == FAST


@pytest.mark.parametrize(
    "text", ["", "fast", "2026-11-29T12:00:00/2026-11-29T12:00:00Z/1", "2026-11-29T12:00:00Z/2026-11-29T12:00:00Z/0"]
)
def test_text_that_is_no_tempo_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(ValueError, match="a tempo reads RUN_ORIGIN/CALENDAR_ORIGIN/RATE"):
        Tempo.parse(text)


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_a_rate_that_cannot_be_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="rate must be"):
        Tempo(run_origin=NOON, calendar_origin=NIGHT, rate=rate)

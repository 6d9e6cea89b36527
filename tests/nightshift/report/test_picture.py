import re
from dataclasses import replace
from datetime import datetime, timedelta
from xml.etree import ElementTree as ET
from zoneinfo import ZoneInfo

import pytest

from nightshift.report.areas import Sample, area, edge, gaps, with_silences
from nightshift.report.checks import Report, run_checks
from nightshift.report.marks import Mark, draw_mark, tally
from nightshift.report.night import Night
from nightshift.report.picture import picture, time_scale
from nightshift.report.track import Side, arrange
from slackwater import LaneReading, OccurrenceState

SVG = "{http://www.w3.org/2000/svg}"


def drawn(night: Night) -> ET.Element:
    return ET.fromstring(picture(run_checks(night)))  # noqa: S314 - our own markup


def with_class(root: ET.Element, css: str) -> list[ET.Element]:
    return [one for one in root.iter() if css in (one.get("class") or "").split()]


def words(root: ET.Element) -> list[str]:
    return ["".join(one.itertext()) for one in root.iter(f"{SVG}text")]


def test_a_reading_that_is_unknown_breaks_the_area_and_is_never_zero() -> None:
    known = Sample(x=0, amount=2), Sample(x=1, amount=2)
    path = area([*known, None, Sample(x=3, amount=2), Sample(x=4, amount=2)], 10, 1)
    assert path.count("M") == path.count("Z") == 2
    assert not re.search(r"\b2\.0 10\.0", path)
    assert edge([*known, None, *known], 10, 1).count("M") == 2


def test_the_picture_has_a_gap_where_nothing_was_read(night: Night) -> None:
    gap = [one for one in drawn(night).iter(f"{SVG}rect") if one.get("class") == "gap" and one.get("y") != "33"]
    assert len(gap) == 1
    whole = [replace(one, running=one.running or 0, ready=one.ready or 0) for one in night.readings]
    assert len(with_class(drawn(replace(night, readings=whole)), "gap")) == 1, "the legend's alone"


def test_a_silence_between_readings_is_a_gap_too(night: Night) -> None:
    at = night.tempo.run_origin
    readings = [LaneReading(at=at + timedelta(seconds=tick), lane="a", running=1) for tick in (0, 1, 2, 30, 31)]
    told = with_silences(readings)
    assert told[3] is None
    ((left, right),) = gaps(told, time_scale(night))
    assert (left, right) == tuple(time_scale(night).x_of_run(readings[number].at) for number in (2, 3))


def test_a_night_without_any_reading_is_drawn_without_areas(night: Night) -> None:
    root = drawn(replace(night, readings=()))
    assert {one.get("d") for one in with_class(root, "steady") if one.tag == f"{SVG}path"} == {""}
    assert any("running unknown" in line for line in words(root))


def test_elastic_work_is_drawn_apart_from_the_rest(night: Night) -> None:
    root = drawn(night)
    elastic = [one for one in with_class(root, "elastic") if one.tag == f"{SVG}path" and one.get("d")]
    assert len(elastic) == 1


def test_each_mark_has_a_shape_of_its_own() -> None:
    shapes = {mark: re.sub(r' class="[^"]*"', "", draw_mark(mark, 0, 0)) for mark in Mark}
    same = {shapes[Mark.DONE], shapes[Mark.PLANNED]}
    assert len(same) == 1, "a full and an empty circle"
    assert len(set(shapes.values())) == len(Mark) - 1


def test_the_legend_is_the_tally(night: Night, report: Report) -> None:
    assert tally(night.occurrences)[Mark.FAILED] == 1
    lines = words(drawn(night))
    for mark, number in tally(report.night.occurrences).items():
        assert f"{number} {mark}" in lines


def test_a_click_that_never_started_is_a_cross_and_a_long_wait_a_triangle(night: Night) -> None:
    click, other = night.clicks[0], night.clicks[1]
    runs = [run for run in night.runs if run.job != click.job]
    slow = [
        replace(run, started_at=other.clicked_at + timedelta(seconds=2)) if run.job == other.job else run
        for run in runs
    ]
    titles = {one.text for one in drawn(replace(night, runs=slow)).iter(f"{SVG}title")}
    assert f"run {click.run_id} of {click.tenant}: never started" in titles
    assert f"run {other.run_id} of {other.tenant}: started after 2.0 s" in titles


def test_names_on_one_track_do_not_collide(night: Night) -> None:
    scale = time_scale(night)
    first = night.occurrences[1]
    crowd = [
        replace(first, due_at=first.due_at + timedelta(minutes=20 * step), entry=f"entry_{step}") for step in range(3)
    ]
    placed = arrange(crowd, scale)
    assert len({one.row for one in placed}) == 3
    assert all(one.side is not Side.NONE for one in placed)


def test_an_entry_that_comes_often_is_named_once(night: Night) -> None:
    first = night.occurrences[1]
    often = [
        replace(
            first,
            due_at=first.due_at + timedelta(minutes=30 * step),
            start_by=first.due_at + timedelta(minutes=30 * step + 1),
            ended_at=None,
            jobs={},
            state=OccurrenceState.DONE,
        )
        for step in range(6)
    ]
    placed = arrange(often, time_scale(night))
    assert [one.side for one in placed].count(Side.NONE) == 5
    assert len({one.row for one in placed}) == 1


def test_an_occurrence_that_still_runs_near_the_end_keeps_its_name_and_leaves_out_its_note(night: Night) -> None:
    one = replace(
        night.occurrences[1],
        state=OccurrenceState.RUNNING,
        due_at=night.ends_at - timedelta(minutes=40),
        started_at=night.tempo.run_at(night.ends_at - timedelta(minutes=40)),
        ended_at=None,
    )
    lines = words(drawn(replace(night, occurrences=[one])))
    assert one.entry in lines
    assert not [line for line in lines if line.startswith("19 done")]


@pytest.mark.parametrize(("day", "hours"), [((2026, 10, 25), 8), ((2027, 3, 28), 6), ((2026, 11, 30), 7)])
def test_the_grid_has_each_hour_that_the_zone_has(night: Night, day: tuple[int, int, int], hours: int) -> None:
    starts_at = datetime(*day, 1, 30, tzinfo=night.zone).astimezone(ZoneInfo("UTC"))
    ends_at = datetime(*day, 8, 0, tzinfo=night.zone).astimezone(ZoneInfo("UTC"))
    scale = replace(time_scale(night), starts_at=starts_at, ends_at=ends_at)
    assert len(list(scale.hours())) == hours
    assert len({scale.x(hour) for hour in scale.hours()}) == hours

from dataclasses import replace

import pytest

from nightshift.report.checks import Report, run_checks
from nightshift.report.figures import waits
from nightshift.report.night import Night


def test_waits_that_never_ended_are_counted_and_in_no_quantile() -> None:
    measured = waits([0.1, 0.3, 0.2], asked=5)
    assert (measured.count, measured.unended, measured.p50_s, measured.max_s) == (3, 2, 0.2, 0.3)


def test_without_an_ended_wait_there_is_no_quantile() -> None:
    assert waits([], asked=2) == waits(iter(()), asked=2)
    assert waits([], asked=2).p95_s is None


def test_one_wait_is_all_its_quantiles() -> None:
    measured = waits([0.4], asked=1)
    assert (measured.p50_s, measured.p95_s, measured.max_s) == (0.4, 0.4, 0.4)


def test_a_click_without_an_answer_is_named_in_the_figures(night: Night) -> None:
    clicks = [replace(night.clicks[0], answered_at=None), *night.clicks[1:]]
    figures = run_checks(replace(night, clicks=clicks)).figures
    assert figures.click_to_answer.unended == 1
    assert figures.click_to_start.unended == 0


def test_a_fan_out_is_held_against_what_the_peer_allows(report: Report) -> None:
    (fan_out,) = report.figures.fan_outs
    assert fan_out.call_count == 120
    assert fan_out.ratio == pytest.approx(fan_out.observed_s / fan_out.allowed_s)
    assert fan_out.observed_s >= fan_out.allowed_s > 0


def test_a_lane_that_was_never_read_has_unknown_peaks_not_zeros(night: Night) -> None:
    figures = run_checks(replace(night, readings=())).figures
    assert {(lane.peak_running, lane.peak_ready, lane.slots) for lane in figures.lanes} == {(None, None, None)}
    assert figures.lanes[0].started > 0


def test_expired_jobs_count_in_their_lane(report: Report) -> None:
    assert [lane.expired for lane in report.figures.lanes] == [1, 0, 0]

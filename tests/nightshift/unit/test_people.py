"""The script of clicks, and how it gets to the process that clicks."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from kombu.exceptions import OperationalError

from nightshift.journal import Journal, read
from nightshift.people import CLICKS_AGAIN_S, PATIENCE_S, Clicks, PlannedClick, Spinners, script
from slackwater import JobState
from slackwater.errors import BrokerUnavailable

STARTS_AT = datetime(2026, 11, 29, 0, 30, tzinfo=UTC)
ENDS_AT = STARTS_AT + timedelta(hours=6, minutes=15)
RUNS = range(1, 241)


def clicks_of(seed: int, night: str = "a night") -> list[tuple[int, datetime]]:
    clicks = script(RUNS, seed=seed, night=night, starts_at=STARTS_AT, ends_at=ENDS_AT)
    return [(click.run_id, click.at) for click in clicks]


def test_clicks_come_in_order_and_within_the_span() -> None:
    instants = [at for _, at in clicks_of(7)]
    assert instants == sorted(instants)
    assert instants[0] >= STARTS_AT
    assert instants[-1] <= ENDS_AT


def test_clicks_come_all_night_long() -> None:
    quarter = (ENDS_AT - STARTS_AT) / 4
    for number in range(4):
        begins = STARTS_AT + number * quarter
        assert sum(begins <= at < begins + quarter for _, at in clicks_of(7)) > len(RUNS) / 8


def test_each_run_is_clicked_once() -> None:
    assert sorted(run for run, _ in clicks_of(7)) == list(RUNS)


def test_the_same_seed_draws_the_same_clicks_and_another_seed_others() -> None:
    assert clicks_of(7, "one night") == clicks_of(7, "another night")
    assert clicks_of(7) != clicks_of(8)


def test_no_two_nights_share_a_job_and_no_two_clicks_either() -> None:
    jobs = [
        click.job
        for night in ("one", "two")
        for click in script(RUNS, seed=7, night=night, starts_at=STARTS_AT, ends_at=ENDS_AT)
    ]
    assert len(set(jobs)) == 2 * len(RUNS)


def test_a_night_without_runs_has_no_clicks() -> None:
    assert script([], seed=7, night="a night", starts_at=STARTS_AT, ends_at=ENDS_AT) == ()


@pytest.fixture
def clock() -> list[float]:
    """The time, in seconds; the test moves it."""
    return [100.0]


def click(run: int) -> PlannedClick:
    return PlannedClick(job=f"job-{run}", run_id=run, at=STARTS_AT)


def test_who_does_not_get_through_clicks_again_for_the_same_job(clock: list[float]) -> None:
    tried: list[str] = []

    def submit(one: PlannedClick) -> None:
        tried.append(one.job)
        if len(tried) < 3:
            raise OperationalError("away")

    clicks = Clicks(submit, now=lambda: clock[0])
    clicks.add(click(1))
    assert clicks.press() == []
    assert clicks.press() == [], "not at once again"
    clock[0] += CLICKS_AGAIN_S
    assert clicks.press() == []
    clock[0] += CLICKS_AGAIN_S
    assert clicks.press() == [click(1)]
    assert tried == ["job-1"] * 3
    assert not clicks.waiting


def test_whose_patience_is_over_says_so(clock: list[float]) -> None:
    def submit(_: PlannedClick) -> None:
        raise BrokerUnavailable("away")

    clicks = Clicks(submit, now=lambda: clock[0])
    clicks.add(click(1))
    assert clicks.press() == []
    clock[0] += PATIENCE_S + 1
    with pytest.raises(BrokerUnavailable):
        clicks.press()


def test_spinners_spin_on_while_nobody_answers(tmp_path: Path, clock: list[float]) -> None:
    class Away:
        def states(self, jobs: Sequence[str]) -> Mapping[str, JobState]:
            if clock[0] < 105:
                raise BrokerUnavailable("away")
            return dict.fromkeys(jobs, JobState.DONE)

    spinners = Spinners(Away(), Journal(tmp_path), now=lambda: clock[0])  # type: ignore[arg-type]  # it is asked for states alone
    spinners.add("job-1")
    spinners.look()
    assert set(spinners.watched) == {"job-1"}
    clock[0] += 10
    spinners.look()
    assert not spinners.watched
    assert [(event["job"], event["state"]) for event in read(tmp_path)] == [("job-1", "done")]

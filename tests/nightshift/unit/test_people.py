"""The script of clicks, and how it gets to the process that clicks."""

from datetime import UTC, datetime, timedelta

from nightshift.people import script

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

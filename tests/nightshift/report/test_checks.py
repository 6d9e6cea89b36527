from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from nightshift.report.check import Check
from nightshift.report.checks import Report, run_checks
from nightshift.report.night import Click, Night, Restart, Run
from nightshift.report.sentences import for_you
from nightshift.world.kinds import Outcome, PathKind
from slackwater import JobState

A_MOMENT = timedelta(milliseconds=1)


def failing(night: Night) -> Check:
    """Return the only check that fails."""
    (check,) = (check for check in run_checks(night).checks if not check.ok)
    return check


def first_run(night: Night, click: Click) -> Run:
    return next(run for run in night.runs if run.job == click.job)


def test_a_good_night_holds_with_an_expired_and_a_failed_job(report: Report) -> None:
    assert report.ok
    assert report.ledger.counts[JobState.EXPIRED] == report.ledger.counts[JobState.FAILED] == 1
    assert report.twice == 0


def test_a_job_without_any_claim_is_lost_and_named(night: Night) -> None:
    victim = night.demands[5]
    check = failing(replace(night, claims=[claim for claim in night.claims if claim.job != victim.job]))
    assert check.name == "Nothing lost"
    assert len(check.evidence) == 1
    assert victim.job in check.evidence[0]
    assert victim.task in check.evidence[0]


def test_a_job_with_two_endings_is_named(night: Night) -> None:
    twin = replace(night.claims[0], state=JobState.EXPIRED)
    check = failing(replace(night, claims=[*night.claims, twin]))
    assert check.name == "Nothing lost"
    assert twin.job in check.evidence[0]


def test_a_second_filing_of_one_run_is_twice(night: Night) -> None:
    second = replace(night.filings[3], filing_id="F-again", idempotency_key="another-key")
    own = replace(night.own_filings[3], filing_id="F-again")
    report = run_checks(replace(night, filings=[*night.filings, second], own_filings=[*night.own_filings, own]))
    (check,) = (check for check in report.checks if not check.ok)
    assert check.name == "Nothing twice"
    assert "run 3 was filed 2 times" in check.evidence[0]
    assert report.twice == 1


@pytest.mark.parametrize(
    ("side", "said"),
    [("filings", "is in our books, not in the world's"), ("own_filings", "is in the world's books, not in ours")],
)
def test_a_filing_in_one_sides_books_alone_is_named(night: Night, side: str, said: str) -> None:
    shorter = getattr(night, side)[1:]
    check = failing(replace(night, **{side: shorter}))
    assert said in check.evidence[0]


def test_an_account_fetched_twice_by_one_job_is_twice(night: Night) -> None:
    again = next(call for call in night.calls if call.kind is PathKind.TRANSACTIONS)
    check = failing(replace(night, calls=[*night.calls, again]))
    assert check.name == "Nothing twice"
    assert str(again.job_id) in check.evidence[0]


def test_a_second_page_is_no_second_sync(night: Night) -> None:
    call = next(call for call in night.calls if call.kind is PathKind.TRANSACTIONS)
    second_page = replace(call, query="date_from=2026-11-01&continuation_key=2")
    assert run_checks(replace(night, calls=[*night.calls, second_page])).ok


def test_details_fetched_twice_by_one_job_are_twice_and_balances_are_not(night: Night) -> None:
    of_a_sync = next(call for call in night.calls if call.kind is PathKind.TRANSACTIONS)
    details = replace(of_a_sync, kind=PathKind.DETAILS)
    assert run_checks(replace(night, calls=[*night.calls, details])).ok
    check = failing(replace(night, calls=[*night.calls, details, details]))
    assert f"job {details.job_id} fetched details of account {details.subject} 2 times" in check.evidence[0]
    balances = replace(of_a_sync, kind=PathKind.BALANCES)
    assert run_checks(replace(night, calls=[*night.calls, balances, balances])).ok


def test_what_a_caller_did_not_get_whole_may_be_fetched_again(night: Night) -> None:
    call = next(call for call in night.calls if call.kind is PathKind.TRANSACTIONS)
    cut = replace(call, outcome=Outcome.TRUNCATED)
    assert run_checks(replace(night, calls=[*night.calls, cut])).ok


def test_a_listing_whose_key_expired_is_begun_anew_once(night: Night) -> None:
    call = next(call for call in night.calls if call.kind is PathKind.TRANSACTIONS)
    expired = replace(call, query="date_from=2026-11-01&continuation_key=2", status=422)
    assert run_checks(replace(night, calls=[*night.calls, expired, call])).ok
    check = failing(replace(night, calls=[*night.calls, expired, call, call]))
    assert str(call.job_id) in check.evidence[0]


def test_accounts_that_need_a_consent_are_for_you(night: Night) -> None:
    needed = replace(night, books=replace(night.books, consent_needed_count=2))
    line = "2 accounts need a new consent; ask the customers for it."
    assert line in for_you(run_checks(needed))
    assert line not in for_you(run_checks(night))


def test_a_sync_repeated_after_its_worker_died_is_a_note(night: Night) -> None:
    again = next(call for call in night.calls if call.kind is PathKind.TRANSACTIONS)
    whole = next(run for run in night.runs if run.job == again.job_id)
    cut_off = replace(whole, ended_at=None, outcome="")
    report = run_checks(replace(night, calls=[*night.calls, again], runs=[cut_off, *night.runs]))
    assert report.ok
    assert [note for check in report.checks for note in check.notes if str(again.job_id) in note]


def elastic_beside(night: Night, click: Click, **changes: object) -> Run:
    run = first_run(night, click)
    facts = {"job": "batch-job", "task": "replay", "elastic": True, "start_by": None, **changes}
    return replace(run, **facts)  # type: ignore[arg-type]


def ran_before(night: Night, click: Click) -> Run:
    return elastic_beside(night, click, started_at=click.clicked_at - A_MOMENT, ended_at=click.clicked_at + A_MOMENT)


def queued_before(night: Night, click: Click) -> Run:
    run = first_run(night, click)
    return elastic_beside(
        night, click, published_at=click.clicked_at - A_MOMENT, started_at=run.started_at, ended_at=run.ended_at
    )


@pytest.mark.parametrize(("batch", "how"), [(ran_before, "ran in"), (queued_before, "in the queue of")])
def test_elastic_work_before_a_clicks_start_is_an_offender(
    night: Night, batch: Callable[[Night, Click], Run], how: str
) -> None:
    click = night.clicks[7]
    check = failing(replace(night, runs=[*night.runs, batch(night, click)]))
    assert check.name == "No person waited behind a batch"
    mine = [line for line in check.evidence if click.job in line]
    assert len(mine) == 1
    assert "batch-job" in mine[0]
    assert how in mine[0]


def test_elastic_work_that_ended_before_the_click_offends_nobody(night: Night) -> None:
    click = min(night.clicks, key=lambda click: click.clicked_at)
    early = elastic_beside(
        night, click, started_at=click.clicked_at - 2 * A_MOMENT, ended_at=click.clicked_at - A_MOMENT
    )
    assert run_checks(replace(night, runs=[*night.runs, early])).ok


def test_elastic_work_in_another_lane_offends_nobody(night: Night) -> None:
    other = replace(ran_before(night, night.clicks[7]), lane="transaction_postprocess")
    assert run_checks(replace(night, runs=[*night.runs, other])).ok


def test_a_click_whose_job_never_started_is_an_offender(night: Night) -> None:
    click = night.clicks[2]
    check = failing(replace(night, runs=[run for run in night.runs if run.job != click.job]))
    assert check.evidence[0].startswith(click.job)
    assert check.evidence[0].endswith("never started")


def test_a_first_start_after_start_by_is_named_and_a_second_is_not(night: Night) -> None:
    run = next(run for run in night.runs if run.start_by is not None)
    assert run.start_by is not None
    later = night.tempo.run_at(run.start_by) + A_MOMENT
    late = replace(run, started_at=later, ended_at=later)
    others = [other for other in night.runs if other.job != run.job]
    assert run_checks(replace(night, runs=[*night.runs, late])).ok
    check = failing(replace(night, runs=[*others, late]))
    assert check.name == "No first start after start_by"
    assert run.job in check.evidence[0]


def test_a_late_start_of_what_the_store_had_let_start_before_is_a_note(night: Night) -> None:
    run = next(one for one in night.runs if one.start_by is not None)
    late = replace(run, started_at=night.tempo.run_at(run.start_by or run.started_at) + timedelta(seconds=1))
    came_late = replace(night, runs=[late if one is run else one for one in night.runs])
    assert not run_checks(came_late).checks[3].ok
    again = Restart(job=run.job, task=run.task, starts=2, is_childs=True)
    check = run_checks(replace(came_late, restarts=[again])).checks[3]
    assert check.ok
    assert run.job in check.notes[0]


def test_a_due_occurrence_that_is_not_recorded_is_named(night: Night) -> None:
    check = failing(replace(night, occurrences=night.occurrences[1:]))
    assert check.evidence == ("update_all_transactions due 02:00 was not recorded",)


def test_an_occurrence_recorded_twice_is_named(night: Night) -> None:
    check = failing(replace(night, occurrences=[*night.occurrences, night.occurrences[0]]))
    assert check.evidence == ("update_all_transactions due 02:00 was recorded 2 times",)

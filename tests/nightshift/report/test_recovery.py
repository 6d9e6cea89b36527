"""What was put away, started again or put right in a night is in its report."""

from dataclasses import replace

import pytest
from tests.nightshift.report.conftest import RUN_ORIGIN

from nightshift.report.checks import run_checks
from nightshift.report.machine import to_json
from nightshift.report.night import Claim, Claimant, Letter, Night, Restart, Sweeping
from nightshift.report.sentences import for_you
from nightshift.report.tables import jobs, letters, sweepings
from slackwater import JobState


def ended_as_a_duplicate(night: Night, *, of: str) -> Night:
    """Let the first of all published jobs end as a duplicate of another."""
    job = night.demands[5].job
    told = Claim(job=job, state=JobState.DUPLICATE, claimant=Claimant.ENDINGS, of=of)
    return replace(night, claims=[*night.claims, told])


def test_a_duplicate_is_counted_once_as_what_it_is_and_its_other_is_named(night: Night) -> None:
    other = night.demands[6].job
    report = run_checks(ended_as_a_duplicate(night, of=other))
    assert report.ok
    assert report.ledger.counts[JobState.DUPLICATE] == 1
    assert to_json(report)["duplicates"] == [{"job": night.demands[5].job, "of": other}]
    assert ("duplicate", "1", "of 1 other job, each known by id") in jobs(report).rows


def test_a_duplicate_of_a_job_that_is_nowhere_is_lost_work(night: Night) -> None:
    (check,) = (one for one in run_checks(ended_as_a_duplicate(night, of="nobody")).checks if not one.ok)
    assert check.name == "Nothing lost"
    assert check.evidence == (f"{night.demands[5].job} ended as a duplicate of nobody, which is nowhere",)
    assert check.summary == "1 duplicate of a job that is nowhere."


@pytest.mark.parametrize(
    ("is_childs", "told"),
    [
        (True, "1 job was started again: its worker's child died: read a (2 starts)"),
        (False, "1 job was started again: its worker died: read a (2 starts)"),
    ],
)
def test_a_job_that_was_started_again_is_told_with_the_reason(night: Night, is_childs: bool, told: str) -> None:
    restart = Restart(job="a", task="read", starts=2, is_childs=is_childs)
    report = run_checks(replace(night, restarts=[restart]))
    assert report.ok
    assert told in report.checks[0].notes
    assert to_json(report)["restarts"] == [{"job": "a", "task": "read", "starts": 2, "is_childs": is_childs}]


def test_dead_letters_are_listed_with_their_cause(night: Night) -> None:
    failed = next(one.job for one in night.claims if one.state is JobState.FAILED)
    letter = Letter(
        job=failed, task="read", state=JobState.FAILED, cause="OSError", reason="OSError: gone", tries=2, attempts=1
    )
    report = run_checks(replace(night, letters=[letter]))
    assert letters(report).rows == ((failed, "read", "failed", "OSError", "2", "1"),)
    assert ("failed", "1", "1 OSError") in jobs(report).rows
    assert any(line.startswith("1 job failed (1 OSError)") for line in for_you(report))


def test_sweepers_that_found_nothing_share_a_row_and_the_others_say_what_they_did(night: Night) -> None:
    at = RUN_ORIGIN
    report = run_checks(
        replace(
            night,
            sweepings=[
                Sweeping(sweeper="dead workers", at=at, found_count=2, recovered_count=1),
                Sweeping(sweeper="late holds", at=at),
                Sweeping(sweeper="recover_stuck_syncs", at=at, rescued=("account 7",)),
                Sweeping(sweeper="requeue_stuck_runs", at=at, error="OSError: away"),
                Sweeping(sweeper="retention", at=at),
            ],
        )
    )
    assert sweepings(report).rows == (
        ("dead workers", "01:30:00", "found 2, recovered 1"),
        ("recover_stuck_syncs", "01:30:00", "recovered this night: account 7"),
        ("requeue_stuck_runs", "01:30:00", "failed: OSError: away"),
        ("2 sweepers", "01:30:00", "found nothing"),
    )

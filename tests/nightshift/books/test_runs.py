from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session
from tests.nightshift.books.conftest import NOW

from nightshift.books.errors import FilingKeyTaken, FilingMismatch, RunNotBegun, UnknownRun
from nightshift.books.models import AgentRun, Filing
from nightshift.books.runs import (
    Claim,
    begin_submission,
    fail_submission,
    finish_submission,
    long_submitting,
    request_submission,
    runs_to_submit,
)


def finish(session: Session, now: datetime, *, run_id: int = 1, filing_id: str = "F1") -> bool:
    return finish_submission(session, run_id, filing_id=filing_id, accepted_at=now, job_id="job-1", at=now)


def test_runs_wait_in_the_order_of_their_approval(session: Session) -> None:
    assert runs_to_submit(session) == (2, 1)
    begin_submission(session, 2, key="k2", job_id="job-1", at=NOW)
    assert runs_to_submit(session) == (1,)


def test_the_key_is_committed_before_the_gateway_is_called(session: Session, engine: Engine) -> None:
    submission = begin_submission(session, 1, key="k1", job_id="job-1", at=NOW)
    assert (submission.claim, submission.key, submission.kind, submission.period) == (
        Claim.BEGUN,
        "k1",
        "vat_return",
        "2026-10",
    )
    with Session(engine) as other:
        assert other.get_one(AgentRun, 1).filing_key == "k1"


def test_after_a_crash_the_first_key_is_handed_out_again(session: Session) -> None:
    begin_submission(session, 1, key="k1", job_id="job-1", at=NOW)
    again = begin_submission(session, 1, key="another", job_id="job-2", at=NOW)
    assert (again.claim, again.key) == (Claim.BEGUN_BEFORE, "k1")


def test_a_submitted_run_is_not_begun_again(session: Session, now: datetime) -> None:
    begin_submission(session, 1, key="k1", job_id="job-1", at=NOW)
    finish(session, now)
    session.commit()
    again = begin_submission(session, 1, key="k1", job_id="job-2", at=NOW)
    assert (again.claim, again.filing_id) == (Claim.SUBMITTED, "F1")


def test_a_run_is_long_submitting_from_its_latest_beginning_until_it_is_filed(session: Session, now: datetime) -> None:
    later = now + timedelta(seconds=1)
    begin_submission(session, 1, key="k1", job_id="job-1", at=now)
    assert long_submitting(session, before=now) == ()
    assert long_submitting(session, before=later) == (1,)
    begin_submission(session, 1, key="k1", job_id="job-2", at=later)
    assert long_submitting(session, before=later) == ()
    finish(session, later)
    assert long_submitting(session, before=later + timedelta(days=1)) == ()


def test_finishing_twice_makes_one_filing(session: Session, now: datetime) -> None:
    begin_submission(session, 1, key="k1", job_id="job-1", at=NOW)
    assert finish(session, now)
    assert not finish(session, now + timedelta(seconds=5))
    filing, run = session.scalars(select(Filing)).one(), session.get_one(AgentRun, 1)
    assert (filing.run_id, filing.gateway_filing_id, filing.key, filing.accepted_at) == (1, "F1", "k1", now)
    assert (run.state, run.filing_id, run.submitted_at) == ("submitted", "F1", now)


def test_a_second_filing_of_one_run_is_an_alarm_and_changes_nothing(session: Session, now: datetime) -> None:
    begin_submission(session, 1, key="k1", job_id="job-1", at=NOW)
    finish(session, now)
    with pytest.raises(FilingMismatch, match="filed as F1, and the gateway now says F2"):
        finish(session, now, filing_id="F2")
    assert session.scalars(select(Filing.gateway_filing_id)).all() == ["F1"]


def test_one_filing_for_two_runs_is_an_alarm(session: Session, now: datetime) -> None:
    for run_id in (1, 2):
        begin_submission(session, run_id, key=f"k{run_id}", job_id="job-1", at=NOW)
    finish(session, now)
    with pytest.raises(FilingMismatch, match="run 2 is filed as another run's filing"):
        finish(session, now, run_id=2)


def test_a_key_belongs_to_one_run(session: Session) -> None:
    begin_submission(session, 1, key="k1", job_id="job-1", at=NOW)
    with pytest.raises(FilingKeyTaken, match="run 2 cannot use key k1"):
        begin_submission(session, 2, key="k1", job_id="job-1", at=NOW)
    assert session.get_one(AgentRun, 2).state == "approved"


def test_a_refused_run_is_failed_and_may_be_tried_again_under_its_key(session: Session) -> None:
    begin_submission(session, 1, key="k1", job_id="job-1", at=NOW)
    assert fail_submission(session, 1, job_id="job-1")
    session.commit()
    assert runs_to_submit(session) == (2,)
    assert begin_submission(session, 1, key="k9", job_id="job-2", at=NOW).key == "k1"


def test_a_submitted_run_cannot_fail_any_more(session: Session, now: datetime) -> None:
    begin_submission(session, 1, key="k1", job_id="job-1", at=NOW)
    finish(session, now)
    assert not fail_submission(session, 1, job_id="job-2")
    assert session.get_one(AgentRun, 1).state == "submitted"


@pytest.mark.parametrize("act", [finish, lambda s, _: fail_submission(s, 1, job_id="job-1")])
def test_a_run_that_was_not_begun_cannot_end(
    session: Session, now: datetime, act: Callable[[Session, datetime], bool]
) -> None:
    with pytest.raises(RunNotBegun, match="call begin_submission before"):
        act(session, now)


def test_the_first_click_counts(session: Session, now: datetime) -> None:
    request_submission(session, 1, at=now)
    request_submission(session, 1, at=now + timedelta(minutes=1))
    assert session.get_one(AgentRun, 1).requested_at == now


def test_an_unknown_run_is_refused_by_every_act(session: Session, now: datetime) -> None:
    with pytest.raises(UnknownRun, match="no agent run 77"):
        request_submission(session, 77, at=now)
    with pytest.raises(UnknownRun):
        begin_submission(session, 77, key="k", job_id="job-1", at=NOW)
    with pytest.raises(UnknownRun):
        finish(session, now, run_id=77)

"""Agent runs on their way to the filing gateway: claimed under a key, filed at most once.

The order that makes it safe to die at any point: the key is committed, the gateway is called with it, the
filing is written. Whoever comes after a crash finds the key and asks the gateway with the same one.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from nightshift.books.errors import FilingKeyTaken, FilingMismatch, RunNotBegun, UnknownRun
from nightshift.books.models import AgentRun, Filing, RunState


class Claim(StrEnum):
    """What `begin_submission` found."""

    BEGUN = "begun"
    """The key is new and committed: call the gateway."""
    BEGUN_BEFORE = "begun before"
    """An earlier attempt committed a key, and its outcome is not known: call or look up with that key."""
    SUBMITTED = "submitted"
    """It is filed already: there is nothing to do."""


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A run that may be, or has been, filed.

    Attributes:
        claim: What to do.
        run_id: Which run.
        tenant_id: Whose it is.
        kind: What is filed.
        period: For which period, as "2026-10".
        key: Idempotency key that the gateway must be called with: the first one ever committed.
        filing_id: The gateway's id where it is filed already.
    """

    claim: Claim
    run_id: int
    tenant_id: int
    kind: str
    period: str
    key: str
    filing_id: str | None


def runs_to_submit(session: Session) -> tuple[int, ...]:
    """Return the ids of all runs that are approved and not begun, the earliest approval first."""
    ids = select(AgentRun.id).where(AgentRun.state == RunState.APPROVED)
    return tuple(session.scalars(ids.order_by(AgentRun.approved_at, AgentRun.id)))


def long_submitting(session: Session, *, before: datetime) -> tuple[int, ...]:
    """Return the ids of runs whose submission began before an instant and has no end, the earliest first."""
    ids = select(AgentRun.id).where(AgentRun.state == RunState.SUBMITTING, AgentRun.begun_at < before)
    return tuple(session.scalars(ids.order_by(AgentRun.begun_at, AgentRun.id)))


def request_submission(session: Session, run_id: int, *, at: datetime) -> None:
    """Write down when a person clicked "submit", in the caller's transaction; the first click counts.

    Raises:
        UnknownRun: there is no such run.
    """
    first_click = func.coalesce(AgentRun.requested_at, at)
    clicked = update(AgentRun).where(AgentRun.id == run_id).values(requested_at=first_click)
    if session.scalar(clicked.returning(AgentRun.id)) is None:
        raise UnknownRun(run_id)


def begin_submission(session: Session, run_id: int, *, key: str, job_id: str, at: datetime) -> Submission:
    """Claim a run under an idempotency key, and commit; only then may the gateway be called.

    Safe to repeat: a run that has a key keeps it, whatever key is offered. It does not exclude a second
    caller at the same time, the gateway's idempotency does; keep two bodies apart with a lease if you must.

    Args:
        session: Open session; what it holds is committed.
        run_id: Which run.
        key: Key to use if the run has none yet.
        job_id: The job that files.
        at: When it begins.

    Raises:
        UnknownRun: there is no such run.
        FilingKeyTaken: another run has this key; nothing is committed.
    """
    run = session.scalar(select(AgentRun).where(AgentRun.id == run_id).with_for_update())
    if run is None:
        raise UnknownRun(run_id)
    claim = _claim(run)
    if claim is not Claim.SUBMITTED:
        run.state, run.job_id, run.filing_key = RunState.SUBMITTING, job_id, run.filing_key or key
        run.begun_at = at
    submission = _submission(run, claim)
    try:
        session.commit()
    except IntegrityError as refused:
        session.rollback()
        raise FilingKeyTaken(run_id, key) from refused
    return submission


def finish_submission(
    session: Session, run_id: int, *, filing_id: str, accepted_at: datetime, job_id: str, at: datetime
) -> bool:
    """Write down that the gateway accepted a run, in the caller's transaction; safe to repeat.

    Args:
        session: Open session; the caller commits.
        run_id: Which run.
        filing_id: The gateway's id of the filing.
        accepted_at: When the gateway accepted it, by its clock.
        job_id: The job that files.
        at: When we learnt of it, by ours.

    Returns:
        True if this call made the filing, False if the same filing was there already.

    Raises:
        UnknownRun: there is no such run.
        RunNotBegun: it has no key; the gateway must not have been called.
        FilingMismatch: it is filed under another id already, or the id is another run's.
    """
    run = _begun(session, run_id)
    made = session.scalar(
        insert(Filing)
        .values(run_id=run_id, gateway_filing_id=filing_id, key=run.filing_key, accepted_at=accepted_at)
        .on_conflict_do_nothing()
        .returning(Filing.id)
    )
    if made is None:
        _must_be_same(session, run_id, filing_id)
        return False
    run.state, run.filing_id, run.submitted_at, run.job_id = (
        RunState.SUBMITTED,
        filing_id,
        at,
        job_id,
    )
    session.flush()
    return True


def fail_submission(session: Session, run_id: int, *, job_id: str) -> bool:
    """Write down that the gateway refused a run for good, in the caller's transaction; safe to repeat.

    Returns:
        True if the run is failed now, False if it was submitted in the meantime and stays so.

    Raises:
        UnknownRun, RunNotBegun: as in `finish_submission`.
    """
    run = _begun(session, run_id)
    if run.state == RunState.SUBMITTED:
        return False
    run.state, run.job_id = RunState.FAILED, job_id
    session.flush()
    return True


def _claim(run: AgentRun) -> Claim:
    if run.state == RunState.SUBMITTED:
        return Claim.SUBMITTED
    return Claim.BEGUN if run.filing_key is None else Claim.BEGUN_BEFORE


def _submission(run: AgentRun, claim: Claim) -> Submission:
    return Submission(
        claim=claim,
        run_id=run.id,
        tenant_id=run.tenant_id,
        kind=run.kind,
        period=run.period,
        key=run.filing_key or "",
        filing_id=run.filing_id,
    )


def _begun(session: Session, run_id: int) -> AgentRun:
    run = session.scalar(
        select(AgentRun).where(AgentRun.id == run_id).with_for_update().execution_options(populate_existing=True)
    )
    if run is None:
        raise UnknownRun(run_id)
    if run.filing_key is None:
        raise RunNotBegun(run_id)
    return run


def _must_be_same(session: Session, run_id: int, filing_id: str) -> None:
    known = session.scalar(select(Filing.gateway_filing_id).where(Filing.run_id == run_id))
    if known != filing_id:
        raise FilingMismatch(run_id, known=known or "another run's filing", told=filing_id)

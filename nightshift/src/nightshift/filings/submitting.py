"""Filing an approved run: at most one filing, whatever dies in between, and whoever begins again.

1. The key is committed, before the gateway hears of the run.
2. Whoever finds a key that was there before asks the gateway first what became of it.
3. The run is submitted under the key. Where no word comes back, the gateway is asked: it accepted, then it is done;
   it knows of nothing, then it may be submitted again under the same key; no answer, then the error is raised and
   somebody comes again later, at step 2.
4. The filing is written.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from sqlalchemy.orm import Session

from nightshift.books.runs import Claim, Submission, begin_submission, fail_submission, finish_submission
from nightshift.filings.client import FilingReceipt
from nightshift.peers import OutcomeUnknown, PeerRejected

SUBMISSIONS = 2
"""How many times one call of `file_run` submits; a gateway that twice leaves us without a word is left alone."""
OF_THE_CALLER = frozenset({401, 403})
"""Refusals of the caller, not of the filing: the run is not failed by them."""


class Gateway(Protocol):
    """The filing gateway; `nightshift.filings.client.FilingClient` is one."""

    def submit(self, key: str, body: dict[str, object], *, job_id: str) -> FilingReceipt:
        """Submit a filing under a key."""

    def lookup(self, key: str, *, job_id: str) -> FilingReceipt | None:
        """Ask what became of a key."""


def filing_key(run_id: int) -> str:
    """Return the idempotency key of a run: the same whoever asks."""
    return f"agent-run:{run_id}"


def file_run(
    run_id: int,
    *,
    open_session: Callable[[], Session],
    gateway: Gateway,
    job_id: str,
    now: Callable[[], datetime],
) -> str:
    """File an approved run, or finish what an earlier call began.

    At most one filing takes effect, however often and by however many this is called. No database connection is
    held while the gateway is waited for.

    Args:
        run_id: Which run.
        open_session: Opens a session on the books.
        gateway: The filing gateway.
        job_id: Whose call this is.
        now: Clock of the books (aware).

    Returns:
        The gateway's id of the filing.

    Raises:
        PeerRejected: The gateway refuses the filing, and the run is failed; or it refuses us (401, 403), and the
            run stays as it is.
        PeerUnavailable, OutcomeUnknown, PeerAnswerInvalid: Call again later: the key is kept.
        UnknownRun, FilingKeyTaken, FilingMismatch: As in `nightshift.books.runs`.
    """
    with open_session() as session:
        submission = begin_submission(session, run_id, key=filing_key(run_id), job_id=job_id, at=now())
    if submission.claim is Claim.SUBMITTED and submission.filing_id is not None:
        return submission.filing_id
    receipt = _known(submission, gateway, job_id=job_id)
    if receipt is None:
        receipt = _submit(submission, gateway, job_id=job_id, refused=_failing(open_session, run_id, job_id))
    with open_session() as session, session.begin():
        finish_submission(
            session,
            run_id,
            filing_id=receipt.filing_id,
            accepted_at=receipt.received_at,
            job_id=job_id,
            at=now(),
        )
    return receipt.filing_id


def _known(submission: Submission, gateway: Gateway, *, job_id: str) -> FilingReceipt | None:
    if submission.claim is Claim.BEGUN:
        return None  # the key is new: nobody can have called with it
    return gateway.lookup(submission.key, job_id=job_id)


def _submit(submission: Submission, gateway: Gateway, *, job_id: str, refused: Callable[[], None]) -> FilingReceipt:
    body: dict[str, object] = {
        "run_id": submission.run_id,
        "kind": submission.kind,
        "period": submission.period,
    }
    for _ in range(SUBMISSIONS):
        try:
            return gateway.submit(submission.key, body, job_id=job_id)
        except PeerRejected as error:
            if error.status not in OF_THE_CALLER:
                refused()
            raise
        except OutcomeUnknown as error:
            unknown = error
        if (receipt := gateway.lookup(submission.key, job_id=job_id)) is not None:
            return receipt
    raise unknown


def _failing(open_session: Callable[[], Session], run_id: int, job_id: str) -> Callable[[], None]:
    def fail() -> None:
        with open_session() as session, session.begin():
            fail_submission(session, run_id, job_id=job_id)

    return fail

"""Filing: a person has clicked "submit" and waits for the gateway's answer."""

from __future__ import annotations

from typing import Any

from nightshift.app import app, connections, sw
from nightshift.books.runs import Claim, Submission, begin_submission, fail_submission, finish_submission
from nightshift.filings.client import FilingReceipt
from nightshift.peers import OutcomeUnknown, PeerRejected


@app.task(name="submit_approved_run", lane="agent_realtime", bind=True)
def submit_approved_run(self: Any, run_id: int) -> str:
    """File an approved run with the gateway; return the gateway's id of the filing.

    The idempotency key is committed before the call, so a second run of this body files under the same key. After an
    outcome that is not known the gateway is asked before anything is sent again.
    """
    job = str(self.request.id)
    with connections.session() as session:
        submission = begin_submission(session, run_id, key=f"agent-run:{run_id}", job_id=job)
    if submission.claim is Claim.SUBMITTED and submission.filing_id is not None:
        return submission.filing_id
    try:
        receipt = _file(submission, job=job)
    except PeerRejected:
        with connections.session() as session, session.begin():
            fail_submission(session, run_id, job_id=job)
        raise
    with connections.session() as session, session.begin():
        finish_submission(
            session,
            run_id,
            filing_id=receipt.filing_id,
            accepted_at=receipt.received_at,
            job_id=job,
            at=sw.clock.calendar(),
        )
    return receipt.filing_id


def _file(submission: Submission, *, job: str) -> FilingReceipt:
    if submission.claim is Claim.BEGUN_BEFORE and (known := connections.gateway.lookup(submission.key, job_id=job)):
        return known
    body = {"run_id": submission.run_id, "kind": submission.kind, "period": submission.period}
    try:
        return connections.gateway.submit(submission.key, body, job_id=job)
    except OutcomeUnknown:
        if (known := connections.gateway.lookup(submission.key, job_id=job)) is not None:
            return known
        return connections.gateway.submit(submission.key, body, job_id=job)

from dataclasses import asdict
from datetime import datetime, timedelta
from decimal import Decimal

from sqlalchemy.orm import Session
from tests.nightshift.books.conftest import NOW

from nightshift.books.attachments import record_reading, record_unreadable
from nightshift.books.consents import mark_consent_over
from nightshift.books.morning import morning_counts
from nightshift.books.runs import begin_submission, fail_submission, finish_submission
from nightshift.books.sync_ledger import BookedEntry, record_refresh, record_sync
from nightshift.documents.accuracy import Facts


def test_an_idle_night_counts_nothing_but_what_waits(session: Session, now: datetime) -> None:
    counts = {name: count for name, count in asdict(morning_counts(session, now)).items() if count}
    assert counts == {"account_count": 3, "unread_attachments_left_count": 2, "approved_runs_left_count": 2}


def test_the_morning_counts_the_effects_since_the_night_began(session: Session, now: datetime) -> None:
    entry = BookedEntry(
        entry_reference="A", booked_on=now.date(), value_on=None, amount=Decimal(1), currency="EUR", counterparty=None,
        remittance="",
    )  # fmt: skip
    evening = now - timedelta(hours=8)
    record_sync(session, 1, balance=Decimal(1), transactions=[entry], job_id="yesterday", at=evening)
    record_sync(session, 2, balance=Decimal(1), transactions=[entry], job_id="tonight", at=now)
    for account_id, at in ((1, evening), (2, now)):
        record_refresh(session, account_id, holder=None, product=None, balance=Decimal(2), job_id="refresh", at=at)
    mark_consent_over(session, 3, session_id=None, refusal="EXPIRED_SESSION", at=now)
    record_reading(session, 1, facts=Facts(vendor="x", date=None, total=None), job_id="j", at=now)
    record_unreadable(session, 2, why="empty", job_id="j", at=now)
    begin_submission(session, 1, key="k1", job_id="j", at=NOW)
    finish_submission(session, 1, filing_id="F1", accepted_at=now, job_id="j", at=now)
    begin_submission(session, 2, key="k2", job_id="j", at=NOW)
    fail_submission(session, 2, job_id="j")
    assert asdict(morning_counts(session, now)) == {
        "account_count": 3,
        "synced_account_count": 1,
        "refreshed_account_count": 1,
        "consent_needed_count": 1,
        "new_transaction_count": 1,
        "read_attachment_count": 1,
        "unreadable_attachment_count": 1,
        "unread_attachments_left_count": 0,
        "submitted_run_count": 1,
        "filing_count": 1,
        "failed_run_count": 1,
        "approved_runs_left_count": 0,
    }

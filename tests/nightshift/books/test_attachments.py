from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from sqlalchemy.orm import Session

from nightshift.books.attachments import (
    attachment_file,
    reading_rates,
    record_reading,
    record_unreadable,
    unread_attachments,
)
from nightshift.books.errors import UnknownAttachment
from nightshift.books.models import Attachment
from nightshift.documents.accuracy import Facts

NOTHING = Facts(vendor=None, date=None, total=None)


def facts(now: datetime, *, vendor: str = "CAFE SUESS") -> Facts:
    return Facts(vendor=vendor, date=now.date(), total=Decimal("9.50"))


def test_what_is_read_is_no_longer_unread(session: Session, now: datetime) -> None:
    assert unread_attachments(session) == (1, 2)
    assert record_reading(session, 2, facts=facts(now), job_id="job-1", at=now)
    assert unread_attachments(session) == (1,)
    assert attachment_file(session, 2).read_at == now


def test_the_first_reading_stays(session: Session, now: datetime) -> None:
    assert record_reading(session, 1, facts=facts(now), job_id="job-1", at=now)
    later = now + timedelta(hours=1)
    assert not record_reading(session, 1, facts=facts(now, vendor="other"), job_id="job-2", at=later)
    assert not record_unreadable(session, 1, why="late", job_id="job-2", at=later)
    session.expire_all()
    kept = session.get_one(Attachment, 1)
    assert (kept.vendor_read, kept.read_by, kept.read_at, kept.read_error) == ("CAFE SUESS", "job-1", now, None)


def test_an_unreadable_attachment_is_read_and_says_why(session: Session, now: datetime) -> None:
    assert record_unreadable(session, 1, why="the file is empty", job_id="job-1", at=now)
    assert unread_attachments(session) == (2,)
    assert session.get_one(Attachment, 1).read_error == "the file is empty"


@pytest.mark.parametrize("total", [None, Decimal(0), Decimal("-3.00")])
def test_a_reading_without_a_sum_to_pay_is_a_reading(session: Session, now: datetime, total: Decimal | None) -> None:
    assert record_reading(session, 1, facts=Facts(vendor=None, date=None, total=total), job_id="job-1", at=now)
    assert session.get_one(Attachment, 1).total_read is None


def test_an_unknown_attachment_is_refused(session: Session, now: datetime) -> None:
    with pytest.raises(UnknownAttachment, match="no attachment 77"):
        record_reading(session, 77, facts=NOTHING, job_id="job-1", at=now)
    with pytest.raises(UnknownAttachment):
        attachment_file(session, 77)


def test_rates_compare_readings_with_the_truth_kept_apart(session: Session, now: datetime) -> None:
    assert reading_rates(session).count == 0
    record_reading(session, 1, facts=facts(now), job_id="job-1", at=now)
    record_reading(session, 2, facts=facts(now), job_id="job-1", at=now)  # nobody knows the truth of this one
    rates = reading_rates(session)
    assert (rates.count, rates.vendor_ratio, rates.date_ratio, rates.total_ratio) == (1, 1.0, 1.0, 1.0)

"""Uploaded receipts, and what was read from them."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from nightshift.books.errors import UnknownAttachment
from nightshift.books.models import Attachment, AttachmentTruth
from nightshift.documents.accuracy import Facts, Rates, judge, rates_of


@dataclass(frozen=True, kw_only=True)
class AttachmentFile:
    """What a reader has to know of an attachment.

    Attributes:
        attachment_id: Its id.
        tenant_id: Whose it is.
        path: Where the image is, relative to the night's folder.
        read_at: When it was read, or None.
    """

    attachment_id: int
    tenant_id: int
    path: str
    read_at: datetime | None


def unread_attachments(session: Session) -> tuple[int, ...]:
    """Return the ids of all attachments that no job has read yet, tenant by tenant, always in one order."""
    ids = select(Attachment.id).where(Attachment.read_at.is_(None)).order_by(Attachment.tenant_id, Attachment.id)
    return tuple(session.scalars(ids))


def attachment_file(session: Session, attachment_id: int) -> AttachmentFile:
    """Look an attachment up before it is read.

    Raises:
        UnknownAttachment: there is none with this id.
    """
    found = session.get(Attachment, attachment_id)
    if found is None:
        raise UnknownAttachment(attachment_id)
    return AttachmentFile(attachment_id=found.id, tenant_id=found.tenant_id, path=found.path, read_at=found.read_at)


def record_reading(session: Session, attachment_id: int, *, facts: Facts, job_id: str, at: datetime) -> bool:
    """Write down what was read, in the caller's transaction; safe to repeat: the first reading stays.

    A total of zero or less is not kept: no receipt is paid with nothing.

    Returns:
        True if this call wrote it, False if the attachment had been read before.

    Raises:
        UnknownAttachment: there is no such attachment.
    """
    total = facts.total if facts.total is not None and facts.total > 0 else None
    values = {"vendor_read": facts.vendor, "date_read": facts.date, "total_read": total}
    return _record(session, attachment_id, values | {"read_by": job_id, "read_at": at})


def record_unreadable(session: Session, attachment_id: int, *, why: str, job_id: str, at: datetime) -> bool:
    """Write down that an attachment cannot be read, and why; safe to repeat, as `record_reading` is.

    Returns:
        True if this call wrote it, False if the attachment had been read before.

    Raises:
        UnknownAttachment: there is no such attachment.
    """
    return _record(session, attachment_id, {"read_error": why, "read_by": job_id, "read_at": at})


def reading_rates(session: Session) -> Rates:
    """Compare all readings with the truth that is kept apart; unreadable ones count as wrong in all parts."""
    rows = session.execute(
        select(Attachment, AttachmentTruth)
        .join(AttachmentTruth, AttachmentTruth.attachment_id == Attachment.id)
        .where(Attachment.read_at.is_not(None))
    )
    return rates_of(
        judge(
            Facts(vendor=read.vendor_read, date=read.date_read, total=read.total_read),
            Facts(vendor=truth.vendor, date=truth.issued_on, total=truth.total),
        )
        for read, truth in rows
    )


def _record(session: Session, attachment_id: int, values: dict[str, str | date | datetime | Decimal | None]) -> bool:
    written = session.scalar(
        update(Attachment)
        .where(Attachment.id == attachment_id, Attachment.read_at.is_(None))
        .values(values)
        .returning(Attachment.id)
    )
    if written is None:
        attachment_file(session, attachment_id)
    return written is not None

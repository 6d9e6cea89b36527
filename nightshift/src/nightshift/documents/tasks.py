"""Receipts: the sweep over unread ones, and the reading of one."""

from __future__ import annotations

from typing import Any

from nightshift.app import app, connections, settings, sw
from nightshift.books.attachments import attachment_file, record_reading, record_unreadable, unread_attachments
from nightshift.documents.accuracy import Facts
from nightshift.documents.scan import UnreadableDocument


@app.task(name="categorize_uncategorized_transactions", lane="transaction_postprocess")
def categorize_uncategorized_transactions() -> int:
    """Sweep: fan out one reading for each unread receipt; return how many were published."""
    with connections.session() as session:
        unread = unread_attachments(session)
    return len(sw.fan_out(extract_data_from_attachment, [(attachment,) for attachment in unread]).published)


@app.task(name="extract_data_from_attachment", lane="transaction_postprocess", bind=True, key="receipt:{attachment_id}")
def extract_data_from_attachment(self: Any, attachment_id: int) -> bool:
    """Read vendor, date and total from a receipt into the books; safe to run twice: the first reading stays.

    Returns:
        True if this run wrote the reading.
    """
    job = str(self.request.id)
    with connections.session() as session:
        file = attachment_file(session, attachment_id)
    if file.read_at is not None:
        return False
    try:
        read = connections.reader.read(settings.folder / file.path)
    except UnreadableDocument as error:
        with connections.session() as session, session.begin():
            return record_unreadable(session, attachment_id, why=str(error), job_id=job, at=sw.clock.calendar())
    facts = Facts(vendor=read.vendor, date=read.date, total=read.total)
    with connections.session() as session, session.begin():
        return record_reading(session, attachment_id, facts=facts, job_id=job, at=sw.clock.calendar())

"""Messages as columns of a row: text for headers and properties, whose order the column's type keeps."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Table, Text, cast

from slackwater.adapters import kept_messages
from slackwater.core.message import Message

_COLUMNS = ("queue", "headers", "body", "content_type", "content_encoding", "properties")


def written(message: Message | None) -> dict[str, Any]:
    """Return a message's values by column; all None for none."""
    if message is None:
        return dict.fromkeys(_COLUMNS)
    return {
        "queue": message.queue,
        "headers": kept_messages.written(message.headers, job=message.job),
        "body": message.body,
        "content_type": message.content_type,
        "content_encoding": message.content_encoding,
        "properties": kept_messages.written(message.properties, job=message.job),
    }


def read(row: Any) -> Message | None:
    """Return the message of a row, by its columns' names, that was selected with `as_text`; None where it has none."""
    if row.queue is None:
        return None
    return Message(
        job=row.job,
        task=row.task,
        queue=row.queue,
        headers=kept_messages.read(row.headers),
        body=bytes(row.body),
        content_type=row.content_type,
        content_encoding=row.content_encoding,
        properties=kept_messages.read(row.properties),
    )


def as_text(table: Table) -> list[ColumnElement[Any]]:
    """Return all columns, those in JSON as the text that was written: the driver's reader knows no dates."""
    return [cast(one, Text).label(one.name) if one.name in ("headers", "properties") else one for one in table.columns]

"""Messages as columns of a row: text for headers and properties, whose order the column's type keeps."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Row, Table, Text, cast

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


def read(row: Row[Any]) -> Message | None:
    """Return the message of a row that was selected with `as_text`; None where it has none."""
    values = row._mapping
    if values["queue"] is None:
        return None
    return Message(
        job=values["job"],
        task=values["task"],
        queue=values["queue"],
        headers=kept_messages.read(values["headers"]),
        body=bytes(values["body"]),
        content_type=values["content_type"],
        content_encoding=values["content_encoding"],
        properties=kept_messages.read(values["properties"]),
    )


def as_text(table: Table) -> list[ColumnElement[Any]]:
    """Return all columns, those in JSON as the text that was written: the driver's reader knows no dates."""
    return [cast(one, Text).label(one.name) if one.name in ("headers", "properties") else one for one in table.columns]

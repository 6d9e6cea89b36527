"""Messages as a store in memory keeps them: copies, of the kinds of value that a database would give."""

from __future__ import annotations

from dataclasses import replace

from slackwater.adapters import kept_messages
from slackwater.core.message import Message


def kept(message: Message) -> Message:
    """Return a message that shares nothing with the given one."""
    return replace(
        message,
        headers=kept_messages.read(kept_messages.written(message.headers, job=message.job)),
        properties=kept_messages.read(kept_messages.written(message.properties, job=message.job)),
        body=bytes(message.body),
    )

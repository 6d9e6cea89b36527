"""Messages as a store in memory keeps them: copies, of the kinds of value that a database would give."""

from __future__ import annotations

from dataclasses import replace

from slackwater.adapters import kept_messages
from slackwater.core.message import Message
from slackwater.errors import ConfigurationError


def kept(message: Message) -> Message:
    """Return a message that shares nothing with the given one."""
    return replace(
        message,
        headers=kept_messages.read(kept_messages.written(message.headers, job=message.job)),
        properties=kept_messages.read(kept_messages.written(message.properties, job=message.job)),
        body=bytes(message.body),
    )


def kept_or_none(message: Message | None) -> Message | None:
    """Return a message as it is kept; None for one that cannot be."""
    try:
        return None if message is None else kept(message)
    except ConfigurationError:
        return None

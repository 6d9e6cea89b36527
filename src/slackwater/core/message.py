"""Messages as they are kept in the store: everything that the broker was, or would have been, given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

STALE_HEADERS = frozenset(
    {
        "redelivered",
        "x-delivery-count",
        "x-death",
        "x-first-death-exchange",
        "x-first-death-queue",
        "x-first-death-reason",
        "x-last-death-exchange",
        "x-last-death-queue",
        "x-last-death-reason",
    }
)
"""What a broker writes onto a message about its deliveries. Published again it would speak of deliveries that were none
of the new message's: a fresh retry would count as redelivered."""


def fresh(headers: Mapping[str, Any]) -> dict[str, Any]:
    """Return headers without what a broker wrote about earlier deliveries, in their order."""
    return {name: value for name, value in headers.items() if name not in STALE_HEADERS}


_PROPERTIES = (
    "correlation_id",
    "reply_to",
    "priority",
    "delivery_mode",
    "message_id",
    "timestamp",
    "type",
    "user_id",
    "app_id",
    "cluster_id",
)


def kept_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a message keeps of its properties; the others are about one delivery (tags, encodings, expiry)."""
    return {name: properties[name] for name in _PROPERTIES if properties.get(name) is not None}


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message, ready to be published as it is.

    Attributes:
        job: Its id.
        task: Its task's name.
        queue: Queue that it goes to.
        headers: Its headers, in their order.
        body: Its body, serialised.
        content_type: Of the body.
        content_encoding: Of the body.
        properties: The broker's properties: correlation_id, reply_to, priority, delivery_mode.
    """

    job: str
    task: str
    queue: str
    headers: Mapping[str, Any]
    body: bytes = field(repr=False)
    content_type: str
    content_encoding: str
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Held:
    """A job that waits as a row in the store.

    Attributes:
        message: What is published when it is released.
        lane: Its lane.
        tries: Which try it will be, from 0.
        not_before: Earliest release (run clock).
        waits_for: Lease that must be free first; None for none.
        start_by: Last instant at which it may start for the first time (calendar clock); None for none.
        reason: Why it waits.
        held_at: Since when (run clock).
    """

    message: Message
    lane: str
    tries: int
    not_before: datetime
    waits_for: str | None = None
    start_by: datetime | None = None
    reason: str
    held_at: datetime

    @property
    def job(self) -> str:
        """Return the job's id."""
        return self.message.job

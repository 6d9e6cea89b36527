"""Jobs: their states, the mark that they carry, and the ids of fan-outs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self
from uuid import UUID, uuid5

HEADER = "slackwater"
"""Name of the one message header that is ours; its value is `Mark.to_header()`."""


class JobState(StrEnum):
    """The states of a job; the first three are not final."""

    HELD = "held"
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    EXPIRED = "expired"
    FAILED = "failed"
    DEAD = "dead"
    REVOKED = "revoked"
    DUPLICATE = "duplicate"

    @property
    def final(self) -> bool:
        """Tell whether a job in this state stays there."""
        return self not in _OPEN


_OPEN = frozenset({JobState.HELD, JobState.QUEUED, JobState.RUNNING})


class ExpiryReason(StrEnum):
    """Why a job ended as expired."""

    LATE = "late"
    """Its first start would have come after its `start_by`."""
    BROKER = "broker"
    """The broker dropped it before anyone took it."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """What a message carries for us in its header.

    Attributes:
        published_at: When it was handed to the broker (run clock, UTC).
        lane: Lane that it was published to; None for a queue that is no lane.
        start_by: Last instant (calendar clock, UTC) at which it may start for the first time; None for none.
        occurrence: Id of the occurrence that it belongs to (its parent job has the same id).
        elastic: It may be held.
        key: Its idempotency key, where the publisher gave one.
        lease: Its lease, where the publisher gave one.
        tenant: Whose work it is; None where nobody said.
        released: It was published from the store, so that a copy of it may come.
        replay_of: Id of the dead letter whose work it does again; None for none.
    """

    published_at: datetime
    lane: str | None = None
    start_by: datetime | None = None
    occurrence: UUID | None = None
    elastic: bool = False
    key: str | None = None
    lease: str | None = None
    tenant: str | None = None
    released: bool = False
    replay_of: str | None = None

    def to_header(self) -> dict[str, Any]:
        """Return the header's value, of plain JSON types, without what is not set."""
        header: dict[str, Any] = {"published_at": self.published_at.isoformat()}
        if self.start_by is not None:
            header["start_by"] = self.start_by.isoformat()
        if self.occurrence is not None:
            header["occurrence"] = str(self.occurrence)
        header |= {name: value for name in _NAMES if (value := getattr(self, name)) is not None}
        return header | {name: True for name in _FLAGS if getattr(self, name)}

    def for_child(self, *, published_at: datetime, lane: str | None) -> Self:
        """Return the mark of a job that this one's body publishes: the same window and tenant, no key of its own."""
        return replace(self, published_at=published_at, lane=lane, key=None, lease=None, released=False, replay_of=None)

    @classmethod
    def from_header(cls, header: object) -> Self | None:
        """Read the header's value.

        Returns:
            The mark; None where there is no header, or it is not one of ours (a foreign client's message must not
            stop a worker).
        """
        if not isinstance(header, Mapping):
            return None
        try:
            return cls(
                published_at=_instant(header["published_at"]),
                start_by=_instant(header["start_by"]) if header.get("start_by") else None,
                occurrence=UUID(header["occurrence"]) if header.get("occurrence") else None,
                **_plain(header),
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            return None


_NAMES = ("lane", "key", "lease", "tenant", "replay_of")
_FLAGS = ("elastic", "released")


def _plain(header: Mapping[str, Any]) -> dict[str, Any]:
    # What is not there has its default: each delivery of a job comes by here.
    named = {name: _name(header[name]) for name in _NAMES if name in header}
    return named | {name: header[name] is True for name in _FLAGS if name in header}


def _name(text: object) -> str | None:
    if text is not None and not isinstance(text, str):
        raise TypeError(f"no name: {text!r}")
    return text


def _instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"an instant without a zone: {text!r}")
    return instant


def child_id(parent: UUID, task: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> UUID:
    """Return the id of a fan-out's child: the same parent and item always give the same id.

    So a parent that runs twice asks for the same children twice, which one id makes harmless. A name-based UUID
    (version 5) of the item's canonical JSON within the parent's id. Source: RFC 9562, section 5.5.
    """
    item = json.dumps([task, list(args), dict(kwargs)], sort_keys=True, separators=(",", ":"), default=str)
    return uuid5(parent, item)

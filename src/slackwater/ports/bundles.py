"""Groups and chords of Celery that are open, and those that were closed since they could not complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from slackwater.core.bundle import Bundle, BundleState


@dataclass(frozen=True, kw_only=True)
class ClosedBundle:
    """A bundle that could not complete.

    Attributes:
        id: The group's id.
        state: Failed or partial.
        reason: Why, with the missing jobs named.
        closed_at: When (run clock).
    """

    id: str
    state: BundleState
    reason: str
    closed_at: datetime


class BundleStore(Protocol):
    """Bundles by the id of their group. One that completes leaves nothing behind."""

    def note(self, bundles: Sequence[Bundle]) -> None:
        """Keep bundles as open; one that is kept already stays as it is, unless that is not whole yet.

        A blame stays.
        """
        ...

    def open(self) -> Sequence[str]:
        """Return the ids of the open ones, oldest first."""
        ...

    def find(self, ids: Sequence[str]) -> Sequence[Bundle]:
        """Return those of the bundles that are open, oldest first."""
        ...

    def blame(self, bundle: str, reason: str) -> bool:
        """Record why an open one cannot complete, before anything is done about it; the first reason stays.

        Returns:
            False where it is open no more.
        """
        ...

    def close(self, ids: Sequence[str], *, at: datetime) -> None:
        """Close open ones: those without a blame are deleted; the others are failed (chords) or partial (groups)."""
        ...

    def closed(self, *, limit: int) -> Sequence[ClosedBundle]:
        """Return those that could not complete, the latest first."""
        ...

    def prune(self, *, before: datetime) -> int:
        """Delete what was closed, or published, before an instant (run clock); return how many."""
        ...

"""Bundles in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from threading import Lock

from slackwater.adapters import kept_messages
from slackwater.adapters.memory.instants import in_utc
from slackwater.core.bundle import Bundle, BundleState
from slackwater.ports.bundles import ClosedBundle


class MemoryBundles:
    """The bundle store."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._open: dict[str, Bundle] = {}
        self._closed: dict[str, ClosedBundle] = {}

    def note(self, bundles: Sequence[Bundle]) -> None:
        """Keep bundles as open; one that is kept already stays as it is, unless that is not whole yet."""
        with self._lock:
            for one in bundles:
                known = self._open.get(one.id)
                if one.id not in self._closed and (known is None or not known.whole):
                    self._open[one.id] = replace(_kept(one), blame=one.blame if known is None else known.blame)

    def open(self) -> Sequence[str]:
        """Return the ids of the open ones, oldest first."""
        with self._lock:
            return [one.id for one in self._by_age()]

    def find(self, ids: Sequence[str]) -> Sequence[Bundle]:
        """Return those of the bundles that are open, oldest first."""
        wanted = frozenset(ids)
        with self._lock:
            return [one for one in self._by_age() if one.id in wanted]

    def blame(self, bundle: str, reason: str) -> bool:
        """Record why an open one cannot complete; the first reason stays."""
        with self._lock:
            one = self._open.get(bundle)
            if one is not None and not one.blame:
                self._open[bundle] = replace(one, blame=kept_messages.legible(reason))
            return one is not None

    def close(self, ids: Sequence[str], *, at: datetime) -> None:
        """Close open ones: those without a blame are deleted."""
        with self._lock:
            for one in [self._open.pop(each) for each in dict.fromkeys(ids) if each in self._open]:
                if one.blame:
                    state = BundleState.PARTIAL if one.body is None else BundleState.FAILED
                    self._closed[one.id] = ClosedBundle(id=one.id, state=state, reason=one.blame, closed_at=in_utc(at))

    def closed(self, *, limit: int) -> Sequence[ClosedBundle]:
        """Return those that could not complete, the latest first."""
        with self._lock:
            found = sorted(self._closed.values(), key=lambda one: one.id)
        return sorted(found, key=lambda one: one.closed_at, reverse=True)[:limit]

    def prune(self, *, before: datetime) -> int:
        """Delete what was closed, or published, before an instant; return how many."""
        with self._lock:
            closed = [one.id for one in self._closed.values() if one.closed_at < before]
            forgotten = [one.id for one in self._open.values() if one.noted_at < before]
            for id_ in closed:
                del self._closed[id_]
            for id_ in forgotten:
                del self._open[id_]
        return len(closed) + len(forgotten)

    def _by_age(self) -> list[Bundle]:
        return sorted(self._open.values(), key=lambda one: (one.noted_at, one.id))


def _kept(one: Bundle) -> Bundle:
    return replace(
        one,
        noted_at=in_utc(one.noted_at),
        start_by=None if one.start_by is None else in_utc(one.start_by),
        kept_until=None if one.kept_until is None else in_utc(one.kept_until),
    )

"""Canaries of the lanes, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from threading import Lock

from slackwater.adapters.memory.instants import in_utc
from slackwater.core.canary import Canary


class MemoryCanaries:
    """The canary store."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_lane: dict[str, Canary] = {}

    def send(self, lane: str, *, at: datetime) -> None:
        """Record that one is sent; while an older one is not answered its instant stays."""
        sent_at = in_utc(at)
        with self._lock:
            known = self._by_lane.get(lane)
            if known is None:
                self._by_lane[lane] = Canary(lane=lane, sent_at=sent_at)
            elif not known.waits:
                self._by_lane[lane] = replace(known, sent_at=sent_at)

    def answer(self, lane: str, *, at: datetime, worker: str) -> None:
        """Record that a worker of the lane has run one; an older answer changes nothing."""
        answered_at = in_utc(at)
        with self._lock:
            known = self._by_lane.get(lane) or Canary(lane=lane, sent_at=answered_at)
            if known.answered_at is None or known.answered_at < answered_at:
                self._by_lane[lane] = replace(known, answered_at=answered_at, worker=worker)

    def all(self) -> Sequence[Canary]:
        """Return each lane's, by lane."""
        with self._lock:
            return [one for _, one in sorted(self._by_lane.items())]

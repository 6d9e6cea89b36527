"""What sweepers did last, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

from slackwater.adapters import kept_messages
from slackwater.adapters.memory.instants import in_utc
from slackwater.core.sweep import Sweep


class MemorySweeps:
    """The sweep store."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_name: dict[str, Sweep] = {}

    def record(self, sweep: Sweep) -> None:
        """Keep a sweeper's latest round; one that is told late is dropped."""
        note, error = kept_messages.legible(sweep.note), kept_messages.legible(sweep.error)
        kept = replace(sweep, at=in_utc(sweep.at), note=note, error=error)
        with self._lock:
            known = self._by_name.get(sweep.sweeper)
            if known is None or known.at <= kept.at:
                self._by_name[sweep.sweeper] = kept

    def all(self) -> Sequence[Sweep]:
        """Return each sweeper's latest round, by name."""
        with self._lock:
            return [one for _, one in sorted(self._by_name.items())]

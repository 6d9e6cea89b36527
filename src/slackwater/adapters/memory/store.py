"""The store in memory: the same contracts, for one process and as long as it lives (tests, simulations)."""

from __future__ import annotations

from slackwater.adapters.memory.jobs import MemoryEndings, MemoryFanOuts
from slackwater.adapters.memory.occurrences import MemoryOccurrences
from slackwater.adapters.memory.sensed import MemoryPresence, MemoryReadings


class MemoryStore:
    """Everything that is kept, in dictionaries; safe for threads."""

    def __init__(self) -> None:
        self.fan_outs = MemoryFanOuts()
        self.occurrences = MemoryOccurrences(self.fan_outs)
        self.endings = MemoryEndings()
        self.presence = MemoryPresence()
        self.readings = MemoryReadings()

    def check(self) -> None:
        """Do nothing: it answers, and has no other version."""

    def migrate(self) -> None:
        """Do nothing."""

    def release_connections(self) -> None:
        """Do nothing: there are none."""

    def close(self) -> None:
        """Do nothing."""

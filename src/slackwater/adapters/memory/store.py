"""The store in memory: the same contracts, for one process and as long as it lives (tests, simulations)."""

from __future__ import annotations

from slackwater.adapters.memory.bundles import MemoryBundles
from slackwater.adapters.memory.canaries import MemoryCanaries
from slackwater.adapters.memory.dead_letters import MemoryDeadLetters
from slackwater.adapters.memory.holds import MemoryHolds
from slackwater.adapters.memory.jobs import MemoryEndings, MemoryFanOuts
from slackwater.adapters.memory.occurrences import MemoryOccurrences
from slackwater.adapters.memory.pulse import Clock, Pulse, system_clock
from slackwater.adapters.memory.runs import MemoryRuns
from slackwater.adapters.memory.sensed import MemoryPresence, MemoryReadings
from slackwater.adapters.memory.sweeps import MemorySweeps


class MemoryStore:
    """Everything that is kept, in dictionaries; safe for threads."""

    def __init__(self, *, now: Clock = system_clock) -> None:
        """Keep nothing yet.

        Args:
            now: The store's own clock, by which leases lapse.
        """
        pulse = Pulse(now)
        self.fan_outs = MemoryFanOuts()
        self.occurrences = MemoryOccurrences(self.fan_outs)
        self.endings = MemoryEndings()
        self.presence = MemoryPresence(pulse)
        self.canaries = MemoryCanaries()
        self.readings = MemoryReadings()
        self.runs = MemoryRuns(pulse)
        self.holds = MemoryHolds(self.runs)
        self.bundles = MemoryBundles()
        self.dead_letters = MemoryDeadLetters()
        self.sweeps = MemorySweeps()

    def check(self) -> None:
        """Do nothing: it answers, and has no other version."""

    def migrate(self) -> None:
        """Do nothing."""

    def release_connections(self) -> None:
        """Do nothing: there are none."""

    def close(self) -> None:
        """Do nothing."""

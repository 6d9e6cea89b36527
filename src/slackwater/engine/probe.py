"""The probe (load sampler): reads each lane, and keeps the readings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from slackwater.core.reading import LaneReading, Presence, QueueReading, compose
from slackwater.engine.outage import Outage
from slackwater.errors import BrokerUnavailable, StoreUnavailable
from slackwater.ports import Clock, Gauge, PresenceStore, ReadingStore


@dataclass(frozen=True, kw_only=True)
class Probe:
    """Samples every lane. What cannot be asked is unknown (None), never zero."""

    queues: Mapping[str, str]
    """Queue by lane."""
    gauge: Gauge
    presence: PresenceStore
    clock: Clock
    queues_out: Outage = field(default_factory=lambda: Outage("queues unknown"))
    workers_out: Outage = field(default_factory=lambda: Outage("workers unknown"))

    def read(self) -> tuple[LaneReading, ...]:
        """Take one reading of each lane."""
        queues = self._queues()
        by_lane = {lane: queues[queue] for lane, queue in self.queues.items() if queue in queues}
        return compose(self.queues, by_lane, self._presences(), now=self.clock.run())

    def _queues(self) -> Mapping[str, QueueReading]:
        try:
            found = self.gauge.read(list(self.queues.values()))
        except BrokerUnavailable as error:
            self.queues_out.failed(error)
            return {}
        self.queues_out.worked()
        return found

    def _presences(self) -> Sequence[Presence] | None:
        try:
            found = self.presence.all()
        except StoreUnavailable as error:
            self.workers_out.failed(error)
            return None
        self.workers_out.worked()
        return found


def keep(readings: ReadingStore, taken: Sequence[LaneReading], *, kept_for: timedelta) -> None:
    """Store one reading of each lane, and delete those older than `kept_for`."""
    if taken:
        readings.append(taken)
        readings.prune(taken[0].at - kept_for)

"""The probe (load sampler): reads each lane, and keeps the readings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog

from slackwater.core.reading import LaneReading, Presence, QueueReading, compose
from slackwater.errors import BrokerUnavailable, StoreUnavailable
from slackwater.ports import Clock, Gauge, PresenceStore, ReadingStore

log = structlog.get_logger("slackwater.probe")


@dataclass(frozen=True, kw_only=True)
class Probe:
    """Samples every lane. What cannot be asked is unknown (None), never zero."""

    queues: Mapping[str, str]
    """Queue by lane."""
    gauge: Gauge
    presence: PresenceStore
    clock: Clock

    def read(self) -> tuple[LaneReading, ...]:
        """Take one reading of each lane."""
        queues = self._queues()
        by_lane = {lane: queues[queue] for lane, queue in self.queues.items() if queue in queues}
        return compose(self.queues, by_lane, self._presences(), now=self.clock.run())

    def _queues(self) -> Mapping[str, QueueReading]:
        try:
            return self.gauge.read(list(self.queues.values()))
        except BrokerUnavailable as error:
            log.warning("queues unknown", error=str(error))
            return {}

    def _presences(self) -> Sequence[Presence] | None:
        try:
            return self.presence.all()
        except StoreUnavailable as error:
            log.warning("workers unknown", error=str(error))
            return None


def keep(readings: ReadingStore, taken: Sequence[LaneReading], *, kept_for: timedelta) -> None:
    """Store one reading of each lane, and delete those older than `kept_for`."""
    if taken:
        readings.append(taken)
        readings.prune(taken[0].at - kept_for)

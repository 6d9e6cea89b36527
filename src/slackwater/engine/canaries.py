"""Canaries through every lane that has workers: a lane that consumes answers, one that only seems to live does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta

import structlog

from slackwater.core.sweep import Sweep
from slackwater.ports import CanaryStore, Clock, PresenceStore

log = structlog.get_logger("slackwater.canaries")


@dataclass(kw_only=True)
class Canaries:
    """Sends a canary through each lane with living workers, and says which lanes do not answer.

    Attributes:
        canaries: What was sent and answered.
        presence: Which lanes have workers.
        paused: Returns the lanes that are paused, which answer nothing.
        send: Publishes a lane's canary.
        clock: Run clock.
        within: A lane that has not answered for that long is silent.
    """

    canaries: CanaryStore
    presence: PresenceStore
    paused: Callable[[], Iterable[str]]
    send: Callable[[str], None]
    clock: Clock
    within: timedelta
    _silent: set[str] = field(default_factory=set, init=False)

    def sweep(self) -> Sweep:
        """Do one round.

        Raises:
            StoreUnavailable, BrokerUnavailable: The next round sends again.
        """
        now = self.clock.run()
        lanes = {lane for one in self.presence.all() if one.alive(now) for lane in one.lanes} - set(self.paused())
        known = {one.lane: one for one in self.canaries.all()}
        silent = {lane for lane in lanes if lane in known and known[lane].silent(now, within=self.within)}
        self._tell(silent)
        for lane in sorted(lanes):
            # One that waits behind a long queue is not joined by others before it is overdue.
            if lane not in known or not known[lane].waits or lane in silent:
                self.canaries.send(lane, at=now)
                self.send(lane)
        return Sweep(sweeper="canaries", at=now, found_count=len(silent), note=", ".join(sorted(silent)))

    def _tell(self, silent: set[str]) -> None:
        for lane in sorted(silent - self._silent):
            log.error("lane does not answer", lane=lane, within_s=self.within.total_seconds())
        for lane in sorted(self._silent - silent):
            log.warning("lane answers again", lane=lane)
        self._silent = silent

"""The feeder: publishes jobs that wait in the store, once their time has come and a slot is free."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import structlog

from slackwater.core.message import Message
from slackwater.ports import Clock, HoldStore

log = structlog.get_logger("slackwater.feeder")
CLAIMED_FOR = timedelta(seconds=30)


@dataclass(frozen=True, kw_only=True)
class Feeder:
    """Feeds the lanes of one worker process; at least once under the same id, as the guard knows a copy.

    Attributes:
        holds: Gives the store's part.
        publish: Hands messages to the broker, as they are.
        free: Returns the free slots of this worker, by lane.
        clock: The two clocks.
        boot: This worker process.
    """

    holds: Callable[[], HoldStore]
    publish: Callable[[Sequence[Message]], None]
    free: Callable[[], Mapping[str, int]]
    clock: Clock
    boot: UUID

    def feed(self) -> int:
        """Publish what may go; return how many.

        Raises:
            StoreUnavailable: Nothing was published, or what was is published again later.
            BrokerUnavailable: What was claimed is claimed again once the claim has lapsed.
        """
        room = {lane: count for lane, count in self.free().items() if count > 0}
        if not room:
            return 0
        claimed = self.holds().claim(room, boot=self.boot, now=self.clock.run(), claimed_for=CLAIMED_FOR)
        if claimed:
            self.publish([held.message for held in claimed])
            self.holds().released([held.job for held in claimed], boot=self.boot)
            log.info("released", jobs=len(claimed))
        return len(claimed)

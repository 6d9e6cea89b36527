"""The breaker: pauses a lane in which nearly everything fails of one cause (circuit breaker)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from slackwater.core.dead_letter import CauseCount, Flood, floods
from slackwater.core.sweep import Sweep
from slackwater.ports import Clock, Store

log = structlog.get_logger("slackwater.breaker")


@dataclass(kw_only=True)
class Breaker:
    """Pauses lanes that are flooded by dead letters, and lets them try again when their pause is over.

    Attributes:
        store: Where dead letters, pauses and workers' counts are.
        clock: The two clocks.
        rule: From when on it is a flood.
        pause_for: How long a pause lasts.
    """

    store: Store
    clock: Clock
    rule: Flood
    pause_for: timedelta
    _ended: deque[tuple[datetime, Mapping[str, int]]] = field(default_factory=deque, init=False)

    def sweep(self) -> Sweep:
        """Do one round."""
        now = self.clock.run()
        letters = self.store.dead_letters
        over = [pause for pause in letters.pauses() if pause.until <= now]
        for pause in over:
            letters.resume(pause.lane)
            log.warning("lane tries again", lane=pause.lane, cause=pause.cause)
        paused = letters.pause(
            floods(
                self._counts(now, over={one.lane: one.until for one in over}),
                rule=self.rule,
                now=now,
                pause_for=self.pause_for,
            )
        )
        for pause in paused:
            log.error(
                "lane paused", lane=pause.lane, reason=pause.reason, first=f"slackwater dead list --lane {pause.lane}"
            )
        return Sweep(
            sweeper="breaker",
            at=now,
            found_count=len(paused),
            recovered_count=len(paused),
            note=", ".join(f"{pause.lane}: {pause.reason}" for pause in letters.pauses()),
        )

    def _counts(self, now: datetime, *, over: Mapping[str, datetime]) -> list[CauseCount]:
        ended = self._ended_in_lanes(now)
        counted = self.store.dead_letters.counts(since=now - self.rule.within)
        # A lane that may try again is not paused at once for what has paused it before.
        return [
            CauseCount(lane=lane, cause=cause, count=count, ended_count=max(ended.get(lane, 0), count))
            for (lane, cause), count in counted.items()
            if lane is not None and lane not in over
        ]

    def _ended_in_lanes(self, now: datetime) -> Mapping[str, int]:
        """Count the bodies that ended in each lane while the rule looks, by the workers' own counts."""
        total: dict[str, int] = {}
        for one in self.store.presence.all():
            for lane, counts in one.lanes.items():
                total[lane] = total.get(lane, 0) + counts.finished
        self._ended.append((now, total))
        while self._ended[0][0] < now - self.rule.within:
            self._ended.popleft()
        before = self._ended[0][1]
        return {lane: max(0, count - before.get(lane, 0)) for lane, count in total.items()}

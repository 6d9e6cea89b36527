"""The sweeper of lost runs: under way by the store, and without a lease, a body or a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

import structlog

from slackwater.core.message import Held
from slackwater.core.sweep import Sweep
from slackwater.core.under_way import GiveUp, Start, TakeBack, UnderWay, fate_of
from slackwater.engine.observing import Observer
from slackwater.errors import BrokerUnavailable, StoreUnavailable
from slackwater.ports import Clock, Store

log = structlog.get_logger("slackwater.sweepers")
NAME = "lost runs"
BATCH = 200


class LostJobs(Protocol):
    """What becomes of a lost job, in terms of its messages and results."""

    def as_held(self, lost: UnderWay, reason: str) -> Held:
        """Return how a job waits in the store that is to be started again."""
        ...

    def told_held(self, held: Held) -> None:
        """Say HELD on its result."""
        ...

    def give_up(self, lost: UnderWay, reason: str) -> None:
        """End it as dead, with a dead letter."""
        ...


@dataclass(kw_only=True)
class LostRuns:
    """Starts runs again whose lease has ended and for which no message comes; any number of processes may do it.

    A dead worker's messages go back to their queues by themselves, and its jobs ask for their leases again; so what is
    found is left alone for longer than that takes, as seen by this process without a gap. A message that comes later
    after all does no harm: two deliveries of one job never run at once, and what has ended is not done again.

    Attributes:
        store: What is under way.
        lost: Acts on jobs.
        lanes: The application's.
        look_at_broker: Raises `BrokerUnavailable` where the broker does not answer: nothing can come back from there.
        clock: The two clocks.
        lives_for: Time-to-live of a lease, and of the amnesty after an outage.
        lost_after: How long a lease must have ended (run clock).
        hopeless_after: How long, of a job that cannot be started again.
    """

    store: Store
    lost: LostJobs
    lanes: frozenset[str]
    look_at_broker: Callable[[], object]
    clock: Clock
    lives_for: timedelta
    lost_after: timedelta
    hopeless_after: timedelta
    _observer: Observer[Start] = field(init=False)

    def __post_init__(self) -> None:
        self._observer = Observer(lives_for=self.lives_for)

    def sweep(self) -> Sweep:
        """Do one round.

        Raises:
            StoreUnavailable, BrokerUnavailable: What is needed does not answer; observing starts anew.
        """
        fates = self._judged(self._looked())
        back = self._take_back({job: fate for job, fate in fates.items() if isinstance(fate, TakeBack)})
        given_up = [self._give_up(job, fate) for job, fate in fates.items() if isinstance(fate, GiveUp)]
        pardon = self._observer.amnesty(now=self.clock.run())
        return Sweep(
            sweeper=NAME,
            at=self.clock.run(),
            found_count=len(back) + len(given_up),
            recovered_count=len(back),
            note="" if pardon is None else f"nobody is judged until {pardon.until:%H:%M:%S}: {pardon.reason}",
        )

    def _looked(self) -> Mapping[Start, timedelta]:
        try:
            self.look_at_broker()
            found = self.store.runs.leaseless(limit=BATCH)
        except (StoreUnavailable, BrokerUnavailable):
            self._observer.interrupt()
            raise
        return self._observer.look(found, now=self.clock.run())

    def _judged(self, seen: Mapping[Start, timedelta]) -> Mapping[UnderWay, TakeBack | GiveUp]:
        old = {start: span for start, span in seen.items() if span >= self.lost_after}
        if not old:
            return {}
        kept = self.store.runs.under_way([start.job for start in old])
        fates = {
            one: fate_of(
                leaseless_for=old[one.start],
                lost_after=self.lost_after,
                kept=one.message is not None,
                served=one.lane in self.lanes,
                hopeless_after=self.hopeless_after,
            )
            for one in kept.values()
            if one.start in old
        }
        return {job: fate for job, fate in fates.items() if isinstance(fate, (TakeBack, GiveUp))}

    def _take_back(self, fates: Mapping[UnderWay, TakeBack]) -> Sequence[str]:
        held = {job.start: self.lost.as_held(job, fate.reason) for job, fate in fates.items()}
        back = self.store.holds.take_back(held)
        for one in held.values():
            if one.job in back:
                self.lost.told_held(one)
                log.warning("lost run starts again", job=one.job, task=one.message.task, reason=one.reason)
        return back

    def _give_up(self, job: UnderWay, fate: GiveUp) -> str:
        self.lost.give_up(job, fate.reason)
        log.error("lost run given up", job=job.job, task=job.task, reason=fate.reason)
        return job.job

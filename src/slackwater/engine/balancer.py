"""The balancer: the process that schedules and senses."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event

import structlog

from slackwater.engine.outage import Outage
from slackwater.engine.probe import Probe, keep
from slackwater.engine.settle import Settler
from slackwater.engine.tick import ADOPT_AFTER, Ticker
from slackwater.errors import BrokerUnavailable, StoreUnavailable
from slackwater.ports import Clock, ReadingStore
from slackwater.settings import Settings

log = structlog.get_logger("slackwater.balancer")
LONGEST_NAP_S = 1.0
PAUSE_AFTER_FAILURE_S = 1.0


@dataclass
class Duty:
    """One thing the balancer does again and again.

    Attributes:
        name: For the log.
        act: What is done.
        every: How often, of the monotonic clock.
        due: Monotonic instant of the next time, in seconds.
        outage: A run of failures.
    """

    name: str
    act: Callable[[], object]
    every: timedelta
    due: float = field(default=0.0)
    outage: Outage = field(default_factory=lambda: Outage("cannot work, keeps trying"))

    @property
    def failing(self) -> bool:
        """Tell whether it failed last time."""
        return self.outage.lasts

    def run(self, *, now: float) -> None:
        """Do it once; an unreachable store or broker is logged and tried again, nothing else is swallowed."""
        self.due = now + self.every.total_seconds()
        try:
            self.act()
        except (StoreUnavailable, BrokerUnavailable) as error:
            self.due = now + PAUSE_AFTER_FAILURE_S
            self.outage.failed(error, duty=self.name)
        else:
            self.outage.worked(duty=self.name)


class Balancer:
    """Runs the duties until it is told to stop. Paced by the monotonic clock; only what is due is on the calendar."""

    def __init__(
        self,
        *,
        ticker: Ticker,
        settler: Settler,
        probe: Probe,
        readings: ReadingStore,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._ticker = ticker
        self._clock = clock
        self._looked_at = clock.calendar()
        self._tick = Duty("schedule", self._look, ADOPT_AFTER)
        self._settle = Duty("settle", settler.settle, settings.settle_every)
        self._duties = [
            self._tick,
            self._settle,
            Duty(
                "probe", lambda: keep(readings, probe.read(), kept_for=settings.readings_kept_for), settings.probe_every
            ),
        ]

    def take_on(self, duty: Duty) -> None:
        """Do one thing more, from the next step on."""
        self._duties.append(duty)

    def run(self, stop: Event) -> None:
        """Work until `stop` is set."""
        log.info("balancer runs")
        while not stop.is_set():
            self.step()
            stop.wait(self._nap())
        # Once more: what has ended since the last look is not left open for the next balancer to find.
        self._settle.run(now=time.monotonic())
        log.info("balancer stops")

    def step(self) -> None:
        """Do each duty whose time has come."""
        if not self._tick.failing and self._until_next_due() <= 0:
            self._tick.due = 0.0
        for duty in self._duties:
            now = time.monotonic()
            if duty.due <= now:
                duty.run(now=now)

    def _look(self) -> None:
        # Taken before the look, so that what comes due during it is the next look's.
        looked_at = self._clock.calendar()
        self._ticker.tick()
        self._looked_at = looked_at

    def _until_next_due(self) -> float:
        wake = self._ticker.next_wake(after=self._looked_at)
        return LONGEST_NAP_S if wake is None else (wake - self._clock.run()).total_seconds()

    def _nap(self) -> float:
        now = time.monotonic()
        naps = [duty.due - now for duty in self._duties]
        if not self._tick.failing:
            naps.append(self._until_next_due())
        return max(0.0, min(LONGEST_NAP_S, *naps))

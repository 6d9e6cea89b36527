"""Sweeping: rounds of all sweepers, each at its own pace, and none that can stop the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event
from typing import Any, Protocol

import structlog

from slackwater.core.sweep import Sweep
from slackwater.errors import BrokerUnavailable, StoreUnavailable
from slackwater.ports import Clock, SweepStore

log = structlog.get_logger("slackwater.sweepers")
LONGEST_NAP_S = 1.0


class Sweeper(Protocol):
    """Finds what got stuck, and recovers it; safe to repeat, and for several at once."""

    def sweep(self) -> Sweep:
        """Do one round.

        Raises:
            StoreUnavailable, BrokerUnavailable: What is needed does not answer; the next round finds the same.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class QueryAndAct:
    """A sweeper of two parts: a query, and an act on what it found.

    Attributes:
        name: Of the sweeper.
        find: Returns what got stuck.
        act: Recovers it; returns how many it recovered, None for all.
        clock: The two clocks.
    """

    name: str
    find: Callable[[], Sequence[Any]]
    act: Callable[[Sequence[Any]], int | None]
    clock: Clock

    def sweep(self) -> Sweep:
        """Do one round."""
        found = self.find()
        acted = self.act(found) if found else 0
        recovered = len(found) if acted is None else acted
        return Sweep(sweeper=self.name, at=self.clock.run(), found_count=len(found), recovered_count=recovered)


@dataclass(frozen=True, kw_only=True)
class QueryAndCount:
    """A sweeper in one part: an act that finds and recovers, and returns how many.

    Attributes:
        name: Of the sweeper.
        act: Finds and recovers.
        clock: The two clocks.
    """

    name: str
    act: Callable[[], int]
    clock: Clock

    def sweep(self) -> Sweep:
        """Do one round."""
        count = self.act()
        return Sweep(sweeper=self.name, at=self.clock.run(), found_count=count, recovered_count=count)


@dataclass(kw_only=True)
class Round:
    """One sweeper and its pace.

    Attributes:
        name: Of the sweeper.
        sweeper: It.
        every: How often (run clock).
    """

    name: str
    sweeper: Sweeper
    every: timedelta
    due: float = field(default=0.0, init=False)


@dataclass(kw_only=True)
class Sweepers:
    """Runs all sweepers until told to stop, beside the schedule, which must not wait for them."""

    rounds: Sequence[Round]
    sweeps: SweepStore
    clock: Clock

    def run(self, stop: Event) -> None:
        """Work until `stop` is set."""
        while not stop.is_set():
            self.step()
            stop.wait(LONGEST_NAP_S)

    def step(self) -> None:
        """Do the rounds whose time has come."""
        for one in self.rounds:
            now = time.monotonic()
            if one.due <= now:
                one.due = now + one.every.total_seconds()
                self._keep(self._sweep(one))

    def _sweep(self, one: Round) -> Sweep:
        try:
            done = one.sweeper.sweep()
        except Exception as error:  # noqa: BLE001  # whatever an application's own sweeper raises must not end ours
            log.warning("sweeper failed, comes again", sweeper=one.name, error=f"{type(error).__name__}: {error}")
            return Sweep(sweeper=one.name, at=self.clock.run(), error=f"{type(error).__name__}: {error}"[:500])
        if done.found_count:
            log.info("swept", sweeper=one.name, found=done.found_count, recovered=done.recovered_count)
        return done

    def _keep(self, sweep: Sweep) -> None:
        try:
            self.sweeps.record(sweep)
        except (StoreUnavailable, BrokerUnavailable) as error:
            log.warning("sweep not recorded", sweeper=sweep.sweeper, error=str(error))

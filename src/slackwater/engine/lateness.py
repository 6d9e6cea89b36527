"""Lateness: whether a job that seems late really is, by the clock that all processes share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from slackwater.core.guard import Expire, Start, may_start
from slackwater.core.job import Mark
from slackwater.errors import StoreUnavailable
from slackwater.ports import Clock, Store

log = structlog.get_logger("slackwater.lateness")


@dataclass(frozen=True, kw_only=True)
class Lateness:
    """Decides whether a job may start, and asks the store's clock before it says no.

    A machine whose clock is ahead would else drop jobs that are in time. A job in time costs no round trip.

    Attributes:
        clock: This machine's two clocks.
        store: Gives the store.
    """

    clock: Clock
    store: Callable[[], Store]

    def verdict(self, mark: Mark | None, *, may_have_had_effect: bool = False) -> Start | Expire:
        """Decide with `core.guard.may_start`; where the store is away this machine's own clock decides."""
        verdict = may_start(mark, now=self.clock.calendar(), may_have_had_effect=may_have_had_effect)
        if mark is None or mark.start_by is None or isinstance(verdict, Start):
            return verdict
        try:
            now = self.store().runs.now()
        except StoreUnavailable as error:
            log.warning("late by this machine's own clock alone", error=str(error))
            return verdict
        if now > self.clock.run_at(mark.start_by):
            return verdict
        ahead_s = (self.clock.run() - now).total_seconds()
        log.warning("this machine's clock is ahead of the store's; job starts", ahead_s=round(ahead_s, 1))
        return Start()

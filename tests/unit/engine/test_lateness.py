"""A job that seems late is dropped only where the store's clock agrees."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from slackwater import Tempo
from slackwater.adapters.clock import SystemClock
from slackwater.core.guard import Expire, Start
from slackwater.core.job import Mark
from slackwater.engine.lateness import Lateness
from slackwater.errors import StoreUnavailable

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
MARK = Mark(published_at=NOON, start_by=NOON)
NIGHT = Tempo(run_origin=NOON, calendar_origin=NOON, rate=60.0)


@dataclass(frozen=True, kw_only=True)
class Clock(SystemClock):
    """A clock that stands still."""

    at: datetime

    def run(self) -> datetime:
        return self.at


class Store:
    """A store's clock alone; it counts how often it is asked."""

    def __init__(self, now: datetime | None) -> None:
        self.now_, self.asked = now, 0

    @property
    def runs(self) -> Any:
        return self

    def now(self) -> datetime:
        self.asked += 1
        if self.now_ is None:
            raise StoreUnavailable("away", where="nowhere")
        return self.now_


def lateness(store: Store, *, own: datetime, tempo: Tempo | None = None) -> Lateness:
    given: Any = store
    return Lateness(clock=Clock(tempo=tempo or Tempo.real(), at=own), store=lambda: given)


def test_a_job_in_time_asks_nobody() -> None:
    store = Store(None)
    assert lateness(store, own=NOON).verdict(MARK) == Start()
    assert lateness(store, own=NOON + timedelta(days=1)).verdict(None) == Start()
    assert store.asked == 0


def test_a_clock_that_is_ahead_drops_nothing() -> None:
    assert lateness(Store(NOON), own=NOON + timedelta(seconds=90)).verdict(MARK) == Start()


def test_what_is_late_by_both_clocks_is_dropped() -> None:
    store = Store(NOON + timedelta(seconds=1))
    assert isinstance(lateness(store, own=NOON + timedelta(seconds=90)).verdict(MARK), Expire)


def test_without_the_store_the_own_clock_decides() -> None:
    assert isinstance(lateness(Store(None), own=NOON + timedelta(seconds=1)).verdict(MARK), Expire)


def test_the_stores_clock_is_the_run_clock_at_any_tempo() -> None:
    mark = Mark(published_at=NOON, start_by=NOON + timedelta(hours=1))
    ahead = NOON + timedelta(seconds=90)
    assert lateness(Store(NOON + timedelta(seconds=59)), own=ahead, tempo=NIGHT).verdict(mark) == Start()
    assert isinstance(lateness(Store(NOON + timedelta(seconds=61)), own=ahead, tempo=NIGHT).verdict(mark), Expire)

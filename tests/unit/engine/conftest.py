"""A clock that stands still, a publisher and a gauge that can be made to fail; the store is the real one in memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from slackwater import Entry, Occurrence, Schedule, every, minutes
from slackwater.adapters.memory import MemoryStore
from slackwater.core.job import JobState
from slackwater.core.reading import QueueReading
from slackwater.engine.tick import Ticker
from slackwater.errors import BrokerUnavailable

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@dataclass
class StillClock:
    """Both clocks, moved by the test alone."""

    now: datetime = NOON

    def run(self) -> datetime:
        return self.now

    def calendar(self) -> datetime:
        return self.now

    def run_at(self, calendar: datetime) -> datetime:
        return calendar

    def move(self, span: timedelta) -> None:
        self.now += span


@dataclass
class Outbox:
    """A publisher that keeps what it publishes; it can be down, or crash after it has published."""

    sent: list[Occurrence] = field(default_factory=list)
    down: bool = False
    crashes: bool = False

    def publish(self, occurrence: Occurrence) -> None:
        if self.down:
            raise BrokerUnavailable("the broker is away")
        self.sent.append(occurrence)
        if self.crashes:
            raise KeyboardInterrupt


@dataclass
class Queues:
    """A gauge with known readings; it can be down."""

    found: Mapping[str, QueueReading] = field(default_factory=dict)
    down: bool = False

    def read(self, queues: Sequence[str]) -> Mapping[str, QueueReading]:
        if self.down:
            raise BrokerUnavailable("the broker is away")
        return {queue: self.found.get(queue, QueueReading(ready=0)) for queue in queues}

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class KnownStates:
    """A result backend with known states."""

    known: dict[str, JobState] = field(default_factory=dict)

    def states(self, jobs: Sequence[str]) -> Mapping[str, JobState]:
        return {job: self.known[job] for job in jobs if job in self.known}


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def outbox() -> Outbox:
    return Outbox()


@pytest.fixture
def schedule() -> Schedule:
    return Schedule(entries={"sweep": Entry(every(minutes(10)), expires=minutes(5))})


@pytest.fixture
def make_ticker(clock: StillClock, store: MemoryStore, outbox: Outbox, schedule: Schedule) -> Callable[[], Ticker]:
    """Make tickers over one store, as twin balancers have them."""
    return lambda: Ticker(
        schedule=schedule, lanes={"sweep": "lane"}, occurrences=store.occurrences, publisher=outbox, clock=clock
    )


@pytest.fixture
def ticker(make_ticker: Callable[[], Ticker], clock: StillClock) -> Ticker:
    """A ticker that has looked at its schedule once, ten minutes before the next occurrence."""
    ticker = make_ticker()
    ticker.tick()
    return ticker

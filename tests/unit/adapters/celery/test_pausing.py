"""A worker obeys the pauses that the store knows."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slackwater import Tempo
from slackwater.adapters.celery.pausing import Pausing
from slackwater.adapters.clock import SystemClock
from slackwater.adapters.memory import MemoryStore
from slackwater.core.dead_letter import Pause

HOUR = timedelta(hours=1)


@dataclass
class Consumer:
    """Celery's consumer, as far as it is used; what is to be done in its loop is done at once."""

    consumed: set[str] = field(default_factory=lambda: {"q-till"})
    task_consumer: Any = None

    def __post_init__(self) -> None:
        self.task_consumer = self

    def call_soon(self, act: Any) -> None:
        act()

    def consuming_from(self, queue: str) -> bool:
        return queue in self.consumed

    def add_task_queue(self, queue: str) -> None:
        self.consumed.add(queue)

    def cancel_task_queue(self, queue: str) -> None:
        self.consumed.discard(queue)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def consumer() -> Consumer:
    return Consumer()


@pytest.fixture
def pausing(store: MemoryStore, consumer: Consumer) -> Pausing:
    clock = SystemClock(tempo=Tempo.real())
    return Pausing(consumer=consumer, queues={"till": "q-till"}, store=lambda: store, clock=clock)


def pause(store: MemoryStore, lane: str, *, until: datetime) -> None:
    now = datetime.now(UTC)
    store.dead_letters.pause([Pause(lane=lane, cause="x", reason="all fail", since=now, until=until)])


def test_without_a_pause_nothing_is_touched(pausing: Pausing, consumer: Consumer) -> None:
    pausing.obey()
    assert (pausing.paused, consumer.consumed) == (frozenset(), {"q-till"})


def test_a_paused_lane_is_not_consumed_until_it_is_resumed(
    pausing: Pausing, consumer: Consumer, store: MemoryStore
) -> None:
    pause(store, "till", until=datetime.now(UTC) + HOUR)
    pausing.obey()
    assert (set(pausing.paused), consumer.consumed) == ({"till"}, set())
    store.dead_letters.resume("till")
    pausing.obey()
    assert (pausing.paused, consumer.consumed) == (frozenset(), {"q-till"})


def test_another_workers_lane_is_none_of_ours(pausing: Pausing, consumer: Consumer, store: MemoryStore) -> None:
    pause(store, "receipts", until=datetime.now(UTC) + HOUR)
    pausing.obey()
    assert (pausing.paused, consumer.consumed) == (frozenset(), {"q-till"})


def test_a_pause_that_is_over_counts_no_more(pausing: Pausing, consumer: Consumer, store: MemoryStore) -> None:
    pause(store, "till", until=datetime.now(UTC) - HOUR)
    pausing.obey()
    assert (pausing.paused, consumer.consumed) == (frozenset(), {"q-till"})


def test_a_connection_that_came_anew_does_not_end_a_pause(
    pausing: Pausing, consumer: Consumer, store: MemoryStore
) -> None:
    pause(store, "till", until=datetime.now(UTC) + HOUR)
    pausing.obey()
    consumer.consumed.add("q-till")
    pausing.obey()
    assert consumer.consumed == set()


def test_while_it_is_not_connected_it_waits(pausing: Pausing, consumer: Consumer, store: MemoryStore) -> None:
    pause(store, "till", until=datetime.now(UTC) + HOUR)
    consumer.task_consumer = None
    pausing.obey()
    assert (set(pausing.paused), consumer.consumed) == ({"till"}, {"q-till"})

"""The feeder publishes what may go, and no more than there are slots."""

from collections.abc import Sequence
from uuid import UUID

import pytest
from tests.unit.engine.conftest import NOON, StillClock

from slackwater import seconds
from slackwater.adapters.memory import MemoryStore
from slackwater.core.message import Held, Message
from slackwater.engine.feeder import CLAIMED_FOR, Feeder
from slackwater.errors import BrokerUnavailable

BOOT = UUID(int=1)


def held(job: str, *, lane: str = "till", after_s: float = 0) -> Held:
    message = Message(
        job=job, task="sync", queue=lane, headers={}, body=b"[]", content_type="application/json", content_encoding=""
    )
    return Held(message=message, lane=lane, tries=0, not_before=NOON + seconds(after_s), reason="retry", held_at=NOON)


class Broker:
    """Takes messages; it can be away."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.away = False

    def publish(self, messages: Sequence[Message]) -> None:
        if self.away:
            raise BrokerUnavailable("the broker is away")
        self.sent += [message.job for message in messages]


@pytest.fixture
def broker() -> Broker:
    return Broker()


def feeder(store: MemoryStore, broker: Broker, clock: StillClock, **free: int) -> Feeder:
    return Feeder(holds=lambda: store.holds, publish=broker.publish, free=lambda: free, clock=clock, boot=BOOT)


def test_what_is_due_goes_out_oldest_first_and_only_into_free_slots(
    store: MemoryStore, broker: Broker, clock: StillClock
) -> None:
    store.holds.hold([held("c", after_s=-1), held("b", after_s=-2), held("a", after_s=-3), held("later", after_s=5)])
    feed = feeder(store, broker, clock, till=2)
    assert feed.feed() == 2
    assert broker.sent == ["a", "b"]
    assert feed.feed() == 1
    assert feed.feed() == 0
    clock.move(seconds(6))
    assert feed.feed() == 1
    assert broker.sent == ["a", "b", "c", "later"]
    assert store.holds.counts() == {}


def test_a_busy_worker_and_another_lanes_worker_take_nothing(
    store: MemoryStore, broker: Broker, clock: StillClock
) -> None:
    store.holds.hold([held("a")])
    assert feeder(store, broker, clock, till=0).feed() == 0
    assert feeder(store, broker, clock, till=-1).feed() == 0
    assert feeder(store, broker, clock, bakery=4).feed() == 0
    assert store.holds.counts() == {"till": 1}


def test_what_was_not_confirmed_stays_and_goes_out_once_the_claim_has_lapsed(
    store: MemoryStore, broker: Broker, clock: StillClock
) -> None:
    store.holds.hold([held("a")])
    feed = feeder(store, broker, clock, till=1)
    broker.away = True
    with pytest.raises(BrokerUnavailable):
        feed.feed()
    broker.away = False
    assert feed.feed() == 0
    clock.move(CLAIMED_FOR + seconds(1))
    assert feed.feed() == 1
    assert broker.sent == ["a"]

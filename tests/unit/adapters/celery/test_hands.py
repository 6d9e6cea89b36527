"""What a worker has in its hands without knowing it goes back, and nothing else does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from celery.worker import state

from slackwater.adapters.celery.hands import OwnHands
from slackwater.adapters.memory import MemoryStore
from slackwater.core.liveness import Owner

OWNER = Owner(worker="till@one", boot=UUID(int=1))


@dataclass
class Broker:
    """Hands of one owner: job by tag."""

    jobs: dict[str, str] = field(default_factory=dict)

    def delivered(self, owner: Owner) -> Sequence[str]:
        return list(self.jobs)

    def jobs_of(self, owner: Owner, tags: Sequence[str]) -> Mapping[str, tuple[str, int]]:
        return {tag: (self.jobs[tag], 0) for tag in tags if tag in self.jobs}

    def restore_these(self, owner: Owner, tags: Sequence[str]) -> int:
        return sum(self.jobs.pop(tag, None) is not None for tag in tags)


class Request:
    """A request of Celery's, as far as it is looked at."""

    def __init__(self, job: str) -> None:
        self.id = job


def consumer(*known: str) -> Any:
    channel = SimpleNamespace(qos=SimpleNamespace(_delivered=dict.fromkeys(known)))
    return SimpleNamespace(connection=object(), task_consumer=SimpleNamespace(channel=channel))


def hands(broker: Broker, consumer: Any, store: MemoryStore | None = None) -> OwnHands:
    kept = store or MemoryStore()
    return OwnHands(owner=OWNER, hands=broker, consumer=consumer, store=lambda: kept)


def test_what_is_forgotten_goes_back_at_the_second_look_and_is_no_attempt() -> None:
    broker, store = Broker({"1": "a", "2": "b"}), MemoryStore()
    own = hands(broker, consumer("2"), store)
    assert own.look() == 0
    assert own.look() == 1
    assert broker.jobs == {"2": "b"}
    assert store.runs.runs(["a"])["a"].handed_back
    assert own.look() == 0


def test_a_body_that_outlived_its_connection_keeps_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Request("a")
    monkeypatch.setattr(state, "active_requests", {runs})
    broker = Broker({"1": "a"})
    own = hands(broker, consumer())
    assert [own.look() for _ in range(3)] == [0, 0, 0]
    assert broker.jobs == {"1": "a"}


def test_nothing_goes_back_while_there_is_no_connection() -> None:
    broker, between = Broker({"1": "a"}), consumer()
    between.connection = None
    own = hands(broker, between)
    assert [own.look() for _ in range(3)] == [0, 0, 0]


def test_a_broker_that_keeps_no_account_is_not_asked_for_one() -> None:
    rabbitmq = consumer()
    rabbitmq.task_consumer.channel = object()
    assert hands(Broker(), rabbitmq).look() == 0

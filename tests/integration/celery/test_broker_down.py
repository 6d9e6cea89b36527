"""Publishing while nobody answers at the broker's address."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery
from kombu.exceptions import OperationalError
from structlog.testing import capture_logs

from slackwater import Lane, Occurrence, Published, Slackwater
from slackwater.adapters.celery.fan_out import PUBLISH_TRIES
from slackwater.adapters.celery.publisher import CeleryPublisher
from slackwater.adapters.memory import MemoryStore
from slackwater.errors import BrokerUnavailable

NOBODY = ("redis://127.0.0.1:1/0", "amqp://127.0.0.1:1//")


def noop(number: int) -> None:
    """Do nothing."""


@pytest.fixture(params=NOBODY, ids=("valkey", "rabbitmq"))
def sw(request: pytest.FixtureRequest) -> Iterator[Slackwater]:
    app = Celery("lonely", broker=request.param, backend="cache+memory://", set_as_current=False)
    app.conf.broker_transport_options = {"max_retries": 1, "interval_start": 0, "interval_step": 0}
    sw = Slackwater(app, store=MemoryStore(), lanes=[Lane("lane", slots=1)])
    add_task: Any = app.task(name="noop", lane="lane", shared=False)
    add_task(noop)
    yield sw
    app.close()


def test_nothing_is_told_as_published(sw: Slackwater) -> None:
    heard: list[Published] = []
    sw.on_published(heard.extend)
    with pytest.raises(OperationalError):
        sw.app.tasks["noop"].apply_async((1,), retry=False)
    assert not heard


def test_a_fan_out_is_tried_several_times_and_then_says_that_the_broker_is_unavailable(sw: Slackwater) -> None:
    heard: list[Published] = []
    sw.on_published(heard.extend)
    with capture_logs() as logs, pytest.raises(BrokerUnavailable) as refused:
        sw.fan_out(sw.app.tasks["noop"], [(1,), (2,)])
    assert str(refused.value).startswith(f"2 jobs of noop were not confirmed after {PUBLISH_TRIES} tries")
    assert refused.value.outcome_unknown
    assert [line["event"] for line in logs] == ["batch not confirmed, sent again"] * (PUBLISH_TRIES - 1)
    assert not heard


def test_an_occurrence_is_not_published_and_says_so_by_entry(sw: Slackwater) -> None:
    now = sw.clock.calendar()
    occurrence = Occurrence(id=uuid4(), entry="nightly", task="noop", due_at=now, start_by=now.replace(year=9999))
    with pytest.raises(BrokerUnavailable, match="occurrence of nightly not published"):
        CeleryPublisher(app=sw.app, clock=sw.clock).publish(occurrence)

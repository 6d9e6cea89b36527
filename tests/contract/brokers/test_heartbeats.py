"""RabbitMQ's heartbeats: who stands still loses what he was delivered, and who goes on beating does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import kombu
import pytest
from tests.integration.celery.spine import eventually

from slackwater.adapters.celery.heartbeating import beating

GONE_WITHIN_S = 9
"""Three times what the broker takes with a heartbeat of one second."""

pytestmark = pytest.mark.rabbitmq


@contextmanager
def holder(url: str, name: str) -> Iterator[kombu.Connection]:
    """Hold one message of a queue, over a connection whose heartbeat is one second and which nobody beats."""
    with kombu.Connection(url, heartbeat=1) as connection:
        queue = kombu.Queue(name, channel=connection.default_channel)
        queue.declare()
        kombu.Producer(connection.default_channel).publish("a job", routing_key=name)
        eventually(queue.get)
        yield connection
        connection.collect()


def test_a_thread_of_ours_keeps_a_delivery_that_a_silent_connection_loses(
    rabbitmq_url: str, rabbitmq_prefix: str
) -> None:
    beaten, silent = f"{rabbitmq_prefix}beaten", [f"{rabbitmq_prefix}silent_{turn}" for turn in range(2)]
    with kombu.Connection(rabbitmq_url) as looking, ExitStack() as held:

        def ready(name: str) -> int:
            channel: Any = looking.default_channel
            return int(channel.queue_declare(name, passive=True).message_count)

        connection = held.enter_context(holder(rabbitmq_url, beaten))
        held.enter_context(beating(SimpleNamespace(connection=connection)))
        for name in silent:
            held.enter_context(holder(rabbitmq_url, name))
            eventually(partial(ready, name), within_s=GONE_WITHIN_S)
        # By now the broker has had twice the time to find the first one silent.
        assert ready(beaten) == 0

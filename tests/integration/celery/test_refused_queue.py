"""A worker whose queue RabbitMQ has with other arguments."""

import os
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.integration.celery.application import MODULE, Place, make
from tests.integration.celery.spine import close
from tests.programs import finished

from slackwater.local import PostgreSQL


@pytest.mark.rabbitmq
def test_a_worker_refuses_in_one_line_with_the_remedy(
    rabbitmq_url: str, valkey_url: str, postgres_server: PostgreSQL, tmp_path: Path
) -> None:
    prefix = f"t{uuid4().hex[:8]}_"
    place = Place(
        broker_url=rabbitmq_url,
        backend_url=valkey_url,
        store_url=postgres_server.url,
        prefix=prefix,
        folder=str(tmp_path),
    )
    sw = make(place)
    sw.store.migrate()
    name = sw.queues["waiting"]
    with sw.app.connection_for_write() as connection:
        channel: Any = connection.default_channel
        channel.queue_declare(name, durable=True, auto_delete=False)
        words = ("celery", "-A", MODULE, "worker", "-Q", name, "--pool", "solo")
        done = finished(*words, env={**os.environ, **place.environment})
        for queue in (*sw.queues.values(), f"{prefix}dead_letters"):
            channel.queue_delete(queue)
    close(sw)

    assert done.returncode == 2, done.stderr
    [said] = [each for each in done.stderr.splitlines() if each.startswith("slackwater:")]
    assert f"queue {name}: is there with other arguments" in said
    assert "Traceback" not in done.stderr

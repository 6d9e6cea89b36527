"""One application a broker, with a worker for each of its lanes, shared by all tests of a session."""

import gc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery
from kombu import Exchange, Queue
from tests.integration.celery.application import LANES, Place, make
from tests.integration.celery.spine import Spine, cli, close, eventually, remove_queues

from slackwater.local import PostgreSQL

BROKERS = ["valkey", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)]


@pytest.fixture(scope="package", params=BROKERS)
def place(
    request: pytest.FixtureRequest,
    valkey_url: str,
    postgres_server: PostgreSQL,
    tmp_path_factory: pytest.TempPathFactory,
) -> Place:
    broker = valkey_url if request.param == "valkey" else request.getfixturevalue("rabbitmq_url")
    return Place(
        broker_url=broker,
        backend_url=valkey_url,
        store_url=postgres_server.url,
        prefix=f"t{uuid4().hex[:8]}_",
        folder=str(tmp_path_factory.mktemp(request.param)),
    )


@pytest.fixture(scope="package")
def spine(place: Place) -> Iterator[Spine]:
    sw = make(place)
    sw.store.migrate()
    with cli(place, "worker", *LANES, log=Path(place.folder) / "workers.log"):
        spine = Spine(place=place, sw=sw)
        eventually(lambda: {lane for one in sw.store.presence.all() for lane in one.lanes} == set(LANES), within_s=60)
        yield spine
    remove_queues(sw, prefix=place.prefix)
    # Results in circles talk to the backend when they are collected: while it is there. What Celery keeps open in a
    # thread that has ended is closed by the collector alone, which says so.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
        for one in (sw, spine.behind):
            close(one)
        gc.collect()


@pytest.fixture
def foreign(spine: Spine) -> Iterator[Callable[..., str]]:
    """Publish as an application without Slackwater does: task's name and arguments; returns the job's id."""
    app = Celery("foreign", broker=spine.place.broker_url, set_as_current=False)

    def publish(task: str, *args: Any, lane: str = "waiting") -> str:
        name = spine.sw.queues[lane]
        queue: Any = Queue(name, Exchange(name, no_declare=True), routing_key=name, no_declare=True)
        return str(app.send_task(task, args, queue=queue).id)

    yield publish
    app.close()

"""The stock control: a plain Celery worker, without Slackwater, on the queue of the ward's lane."""

import os
from pathlib import Path

from celery import Celery
from kombu import Exchange, Queue
from tests.integration.celery.application import Place, await_gate, write

place = Place.from_environment(os.environ)
app = Celery("stock", broker=place.broker_url, backend=place.backend_url)
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=int(os.environ.get("STOCK_MULTIPLIER", "1")),
    task_queues=[
        # What is declared is the lane's; a quorum queue refuses another declaration.
        Queue(f"{place.prefix}heavy", Exchange(f"{place.prefix}heavy", no_declare=True), no_declare=True)
    ],
)
app.place = Path(place.folder)  # type: ignore[attr-defined]


@app.task(name="heavy.wait_at_gate", bind=True)
def wait_at_gate(task, gate):  # type: ignore[no-untyped-def]  # Celery's decorator is untyped
    write(app, f"{task.request.id}.ran", {"pid": os.getpid()})
    await_gate(task, gate)

"""The stock control: a plain Celery worker, without Slackwater, on the queue of the ward's lane.

With the settings that Celery's documentation gives for jobs that must not be lost; on Valkey quick ones.
"""

import os
from pathlib import Path

from celery import Celery
from kombu import Exchange, Queue
from tests.integration.cases.application import call
from tests.integration.celery.application import Place, kill_itself, note, retry_once, wait_at_gate

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
if place.broker_url.startswith("redis"):
    app.conf.broker_transport_options = {
        "visibility_timeout": int(os.environ.get("STOCK_VISIBILITY_TIMEOUT", "3600")),
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
    }
app.place = Path(place.folder)  # type: ignore[attr-defined]


def file(task, run):  # type: ignore[no-untyped-def]  # Celery's decorator is untyped
    """File a run with the peer, and again where its answer is lost."""
    note(task, run)
    return call("submit", run)["filing"]


app.task(name="heavy.wait_at_gate", bind=True)(wait_at_gate)
app.task(name="heavy.retry_at_once", bind=True)(retry_once)
app.task(name="kills_itself", bind=True)(kill_itself)
app.task(name="heavy.file", bind=True, autoretry_for=(OSError,), default_retry_delay=0)(file)

"""The spine's application with quick settings, and bodies that have an effect outside of the broker."""

from __future__ import annotations

import json
import os
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from tests.contract.callers import caller_at
from tests.integration.celery import application as spine
from tests.integration.celery.application import Place, await_gate, note, write

from slackwater import Backoff, Settings, Slackwater, Tempo, seconds
from slackwater.adapters.clock import SystemClock

MODULE = "tests.integration.cases.worker"
AHEAD = "CASES_CLOCK_AHEAD_S"
PEER = "CASES_PEER"
SOFT = "CASES_SOFT_SHUTDOWN_S"
CALLERS = {"heavy": "django", "waiting": "psycopg"}
"""What the bodies of each lane commit with."""
QUICK = {
    "SLACKWATER_PRESENCE_EVERY": "0.2",
    "SLACKWATER_PRESENCE_LIVES_FOR": "4",
    "SLACKWATER_LEASE_LIVES_FOR": "4",
    "SLACKWATER_FROZEN_AFTER": "1",
    "SLACKWATER_SWEEP_EVERY": "0.5",
    "SLACKWATER_FEED_EVERY": "0.2",
    "SLACKWATER_LOST_AFTER": "1",
}


@dataclass(frozen=True, kw_only=True)
class ClockAhead(SystemClock):
    """The clock of a machine that is wrong."""

    ahead: timedelta

    def run(self) -> datetime:
        return datetime.now(UTC) + self.ahead


def make(place: Place) -> Slackwater:
    ahead = timedelta(seconds=float(os.environ.get(AHEAD, "0")))
    sw = spine.make(
        place,
        settings=Settings.from_environment({**QUICK, **os.environ}),
        clock=ClockAhead(tempo=Tempo.real(), ahead=ahead) if ahead else None,
    )
    sw.app.conf.worker_soft_shutdown_timeout = float(os.environ.get(SOFT, "0"))
    add_cases(sw.app)
    return sw


def add_cases(app: Any) -> None:
    for lane in spine.LANES:
        options = {"lane": lane, "bind": True, "shared": False}
        app.task(name=f"{lane}.book", lease=f"book-{lane}:{{account}}", **options)(book)
        replaced = {"lease": f"once-{lane}:{{account}}", "lease_taken": "replace", "attempts": 1}
        app.task(name=f"{lane}.book_once", **replaced, **options)(book)
        app.task(name=f"{lane}.retry_at_once", **options)(spine.retry_once)
        app.task(name=f"{lane}.note_children", **options)(note_children)
        app.task(name=f"{lane}.retry_later", **options)(spine.retry_later)
        app.task(name=f"{lane}.fail", **options)(spine.fail)
        quick = Backoff(tries=5, base=seconds(0.6), jitter=False)
        app.task(name=f"{lane}.file", key=f"file-{lane}:{{run}}", backoff=quick, retry_on=[OSError], **options)(file)
        app.task(name=f"{lane}.file_unkeyed", **options)(file)
        once = {"key": f"once-{lane}:{{effect}}", "key_taken": "wait", "attempts": 1}
        app.task(name=f"{lane}.keyed_once", **once, **options)(spine.keyed)


def effects(place: Place) -> psycopg.Connection[Any]:
    """Connect to the store's own database, where the bodies' effects are."""
    return psycopg.connect(place.store_url.replace("+psycopg", ""))


def book(task: Any, account: str, gate: str | None = None) -> None:
    """Write one row of the books, under the fence."""
    note(task, account)
    lane = task.name.partition(".")[0]
    if gate is not None:
        await_gate(task, gate)
    sw = Slackwater.of(task.app)
    fence = sw.fence()
    assert fence is not None
    try:
        store = Place.from_environment(os.environ).store_url
        with caller_at(CALLERS[lane], store) as caller, caller.transaction(), sw.fenced(caller.fenceable):
            caller.write("effects", task.request.id, fence.token)
    except Exception as error:
        write(task.app, f"{task.request.id}.refused", {"error": type(error).__name__})
        raise


def note_children(task: Any, count: int) -> list[str]:
    """Publish so many jobs that carry this one's window; return their ids."""
    note(task)
    lane = task.name.partition(".")[0]
    return [task.app.tasks[f"{lane}.note"].delay(number).id for number in range(count)]


def file(task: Any, run: str) -> Any:
    """File a run with the peer: look it up first, as an earlier body may have had its effect."""
    note(task, run)
    known = call("lookup", run)
    return known["filing"] or call("submit", run)["filing"]


def call(act: str, run: str) -> Any:
    with urllib.request.urlopen(f"{os.environ[PEER]}/{act}/{run}", timeout=10) as answer:  # noqa: S310
        return json.loads(answer.read())

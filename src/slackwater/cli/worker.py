"""`slackwater worker LANE...`: a plain Celery worker with its lane's settings."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import click

from slackwater.app import Slackwater
from slackwater.cli.main import load
from slackwater.core.lane import Lane, find
from slackwater.errors import LocalServiceError

POLL_S = 0.2


@click.command(name="worker")
@click.argument("lanes", nargs=-1, required=True, metavar="LANE...")
@click.option("--slots", type=click.IntRange(1), help="Places in the pool instead of the lane's own.")
@click.option("--name", help="Node name before the @; by default the lane's name.")
@click.option("--loglevel", default="WARNING", show_default=True, help="Celery's log level.")
@click.pass_context
def command(
    context: click.Context, lanes: Sequence[str], *, slots: int | None, name: str | None, loglevel: str
) -> None:
    """Run a Celery worker for each LANE, with the lane's queue, pool, slots, prefetch, niceness and node name.

    One lane runs in this process; several run in a process each, since each has a pool of its own.
    """
    sw = load(context)
    sw.check()
    chosen = [find(sw.lanes, lane, asked_by="worker") for lane in dict.fromkeys(lanes)]
    if len(chosen) == 1:
        _be(sw, chosen[0], slots=slots, name=name, loglevel=loglevel)
    else:
        _run_each(context, chosen, slots=slots, loglevel=loglevel)


def arguments(lane: Lane, queue: str, *, slots: int | None, name: str, loglevel: str) -> list[str]:
    """Return Celery's arguments for a lane's worker."""
    return [
        "worker",
        f"--queues={queue}",
        f"--pool={lane.pool}",
        f"--concurrency={slots or lane.slots}",
        f"--hostname={name}@{socket.gethostname()}",
        f"--loglevel={loglevel}",
        "--optimization=fair",
        "--without-mingle",
        "--without-gossip",
    ]


def _be(sw: Slackwater, lane: Lane, *, slots: int | None, name: str | None, loglevel: str) -> None:
    sw.store.check()
    for line in sw.exceptions_of_tasks():
        click.echo(f"slackwater: note: {line}", err=True)
    if lane.niceness:
        os.nice(lane.niceness)
    # Celery counts --concurrency below the slots of the lane as fewer connections; the rest is its own command line.
    sw.app.worker_main(arguments(lane, sw.queues[lane.name], slots=slots, name=name or lane.name, loglevel=loglevel))


def _run_each(context: click.Context, lanes: Sequence[Lane], *, slots: int | None, loglevel: str) -> None:
    """Run a worker process for each lane; the first that ends ends all, with its exit code."""
    app = context.obj if isinstance(context.obj, str) else os.environ.get("CELERY_APP", "")
    extra = [f"--loglevel={loglevel}", *([f"--slots={slots}"] if slots else [])]
    base = [sys.executable, "-m", "slackwater", "-A", app, "worker"]
    running = {lane.name: subprocess.Popen([*base, lane.name, *extra]) for lane in lanes}
    asked: list[int] = []

    def ask_to_stop(number: int, _: Any) -> None:
        asked.append(number)
        for process in running.values():
            process.send_signal(signal.SIGTERM)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ask_to_stop)
    ended: dict[str, int] = {}
    while len(ended) < len(running):
        ended |= {lane: code for lane, process in running.items() if (code := process.poll()) is not None}
        if ended and not asked:
            ask_to_stop(signal.SIGTERM, None)
            lane, code = next(iter(ended.items()))
            failure = LocalServiceError(f"worker {lane} ended with {code}; the others are stopped, see its log above")
            for process in running.values():
                process.wait()
            raise failure
        time.sleep(POLL_S)

"""`slackwater worker LANE...`: a plain Celery worker with its lane's settings."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import click
from celery import Celery
from celery.bin.celery import celery as commands

from slackwater.adapters.embedded.parent_death import launch_line
from slackwater.app import Slackwater
from slackwater.cli.main import load_shared, say_notes
from slackwater.core.lane import Lane, find
from slackwater.errors import ConfigurationError, LocalServiceError

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
    sw = load_shared(context)
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
    say_notes(sw)
    if lane.niceness:
        os.nice(lane.niceness)
    # Celery counts --concurrency below the slots of the lane as fewer connections; the rest is its own command line.
    sys.exit(
        _end_of_celery(
            sw.app, arguments(lane, sw.queues[lane.name], slots=slots, name=name or lane.name, loglevel=loglevel)
        )
    )


def _end_of_celery(app: Celery, argv: list[str]) -> int:
    """Run a command of Celery's; return its exit code, which `app.worker_main` leaves out (a failure would be a 0)."""
    celery: Any = commands
    celery.params[0].default = app
    return int(celery.main(args=argv, standalone_mode=False) or 0)


def _run_each(context: click.Context, lanes: Sequence[Lane], *, slots: int | None, loglevel: str) -> None:
    """Run a worker process for each lane; the first that ends ends all."""
    if not isinstance(context.obj, str):
        raise ConfigurationError("several lanes need a process each; run slackwater -A PACKAGE.MODULE worker LANE...")
    extra = [f"--loglevel={loglevel}", *([f"--slots={slots}"] if slots else [])]
    base = [sys.executable, "-m", "slackwater", "-A", context.obj, "worker"]
    running: dict[str, subprocess.Popen[bytes]] = {}
    asked: list[int] = []

    def ask_to_stop(number: int, _: Any) -> None:
        asked.append(number)
        for process in list(running.values()):
            process.send_signal(signal.SIGTERM)

    # Before the first worker is there: one that nobody stops must not be left.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ask_to_stop)
    for lane in lanes:
        line = launch_line([*base, lane.name, *extra], at_parents_death=signal.SIGTERM)
        running[lane.name] = subprocess.Popen(line)
    if asked:
        ask_to_stop(asked[0], None)
    ended = _first_to_end(running)
    if not asked:
        ask_to_stop(signal.SIGTERM, None)
        _wait_for(running)
        raise LocalServiceError(
            f"worker {ended} ended with {running[ended].returncode}; the others are stopped, see its log above"
        )
    _wait_for(running)


def _first_to_end(running: Mapping[str, subprocess.Popen[bytes]]) -> str:
    while True:
        for lane, process in running.items():
            if process.poll() is not None:
                return lane
        time.sleep(POLL_S)


def _wait_for(running: Mapping[str, subprocess.Popen[bytes]]) -> None:
    for process in running.values():
        process.wait()

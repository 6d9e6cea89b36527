"""Claims: what it costs to be able to find lost runs, and groups and chords that cannot complete.

To keep the messages of jobs with a key or a lease that run for longer than a moment is one statement, beside their
bodies: start and end take less than twice as long with it in between, of one job and of sixteen together (600 B each).
Jobs that are over by then have no part in it. A group or chord is noted with one statement, however many jobs it has;
one look of the sweeper at a thousand open chords, whose ten thousand messages all wait and are listed, takes a second
or less.

Starts a Valkey and a PostgreSQL of its own. The variants (kept and not, noted and not) alternate in one process, with
no workers; a ratio is of the medians. Caveat: one machine, and whatever else ran on it; servers and client share its
cores. `run_ms` is start and end of so many jobs at once, with the statement that keeps them in between and without
it: what goes on in the store and its client, not in Celery's worker.

Run: .venv/bin/python benchmarks/keeping.py --json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from celery import Celery, chord, group

from slackwater import Lane, Settings, Slackwater, processes
from slackwater.cli.sweepers import stuck_bundles_of
from slackwater.core.admission import Ask, LeaseRule
from slackwater.core.job import JobState
from slackwater.core.message import Message
from slackwater.core.under_way import Offer
from slackwater.local import Data, RunFolder, Servers, Supervisor
from slackwater.ports import Finish

BOOT = UUID(int=1)
OPEN_CHORDS, MEMBERS = 1_000, 10


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60, help="of each variant (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    measured = measure(options.rounds)
    print(json.dumps(measured) if options.json else "\n".join(f"{name}: {value}" for name, value in measured.items()))


def measure(rounds: int) -> dict[str, Any]:
    """Return all figures, with the machine's load before and after."""
    with (
        tempfile.TemporaryDirectory() as folder,
        RunFolder(Path(folder) / "run", now=datetime.now(UTC), data=Data.DISCARD) as run,
        Supervisor(run) as supervisor,
    ):
        os.environ.update(processes.environment(Servers.start(run.path, supervisor), base={}))
        measured: dict[str, Any] = {"load_1m_before": os.getloadavg()[0]}
        noted, bare = _application("noted", watch=True), _application("bare", watch=False)
        noted.store.migrate()
        measured["run_ms"] = {
            f"{size} B, {count} at once": _runs(noted, rounds, size=size, count=count)
            for size, count in ((600, 1), (600, 16), (64_000, 1))
        }
        measured["group_ms"] = {str(size): _groups(noted, bare, rounds, size=size) for size in (2, 10, 100)}
        measured["sweep_ms"] = _sweep(noted)
        measured["load_1m_after"] = os.getloadavg()[0]
        for sw in (noted, bare):
            # Results that are collected later would still talk to it, when it is gone.
            consumer: Any = sw.app.backend.result_consumer
            consumer.stop()
            consumer.cancel_for = lambda _: None
        return measured


def _application(name: str, *, watch: bool) -> Slackwater:
    app = Celery(name, set_as_current=False)
    environ = {key: value for key, value in os.environ.items() if key.startswith("SLACKWATER_")}
    settings = Settings.from_environment({**environ, "SLACKWATER_WATCH_BUNDLES": str(int(watch))})
    sw = Slackwater(app, lanes=[Lane("till", slots=1)], settings=settings, prefix="bench_")
    app.task(name="serve", lane="till", shared=False)(serve)
    return sw


def serve(number: int) -> None:
    """Stand for a body; nobody runs it here."""


def _runs(sw: Slackwater, rounds: int, *, size: int, count: int) -> Mapping[str, float]:
    def run(*, kept: bool) -> None:
        asks = [_ask() for _ in range(count)]
        begun = sw.store.runs.begin(asks)
        if kept and len(sw.store.runs.keep(BOOT, [_offer(ask.job, size=size) for ask in asks])) != count:
            raise AssertionError("not all were kept")
        sw.store.runs.finish(
            [
                Finish(
                    job=ask.job,
                    tries=0,
                    state=JobState.DONE,
                    ended_at=datetime.now(UTC),
                    lease=ask.job,
                    fence=one.fence,
                )
                for ask, one in zip(asks, begun, strict=True)
            ]
        )

    return _compared(rounds, kept=lambda: run(kept=True), without=lambda: run(kept=False))


def _ask() -> Ask:
    job = uuid4().hex
    lease = LeaseRule(name=job, lives_for=timedelta(seconds=15))
    return Ask(job=job, tries=0, task="serve", boot=BOOT, redelivered=False, lease=lease)


def _offer(job: str, *, size: int) -> Offer:
    message = Message(
        job=job,
        task="serve",
        queue="till",
        headers={"id": job, "task": "serve", "retries": 0, "origin": "bench", "argsrepr": "(7,)"},
        body=os.urandom(size // 2).hex().encode(),
        content_type="application/json",
        content_encoding="utf-8",
    )
    return Offer(job=job, tries=0, task="serve", lane="till", lease=job, message=message)


def _groups(noted: Slackwater, bare: Slackwater, rounds: int, *, size: int) -> Mapping[str, float]:
    def publish(sw: Slackwater) -> None:
        task: Any = sw.app.tasks["serve"]
        group(task.si(number) for number in range(size)).apply_async()

    return _compared(rounds, kept=lambda: publish(noted), without=lambda: publish(bare))


def _sweep(sw: Slackwater) -> Mapping[str, float]:
    """Time one look at open chords whose members all wait, the messages listed."""
    with sw.app.connection_for_write() as connection:
        channel: Any = connection.default_channel
        channel.queue_purge(sw.queues["till"])
    sw.store.bundles.close(sw.store.bundles.open(), at=datetime.now(UTC))
    task: Any = sw.app.tasks["serve"]
    for _ in range(OPEN_CHORDS - 1):
        chord([task.si(number) for number in range(MEMBERS)], task.si(0)).apply_async()
    sweeper = stuck_bundles_of(sw)
    sweeper.missing_after = timedelta(0)
    took = [_timed(sweeper.sweep) for _ in range(5)]
    return {"first": round(took[0], 1), "later": round(statistics.median(took[1:]), 1)}


def _compared(rounds: int, *, kept: Callable[[], None], without: Callable[[], None]) -> Mapping[str, float]:
    for act in (kept, without) * 5:
        act()
    took: dict[str, list[float]] = {"kept": [], "without": []}
    for turn in range(rounds):
        pair = [("kept", kept), ("without", without)]
        for name, act in pair if turn % 2 else reversed(pair):
            took[name].append(_timed(act))
    medians = {name: statistics.median(values) for name, values in took.items()}
    return {
        **{name: round(value, 2) for name, value in medians.items()},
        "ratio": round(medians["kept"] / medians["without"], 2),
    }


def _timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1_000


if __name__ == "__main__":
    main()

"""Claims: what guard, keys, leases and recovery cost.

A guarded no-op job is meant to run at 95 % of plain Celery's rate or more, one with key and lease at half of it or
more. Medians of `--only threads --rounds 4 --seconds 3` (2 cores, load below 3): 1.02 on Valkey and 0.94 on RabbitMQ
(0.88 to 1.01) for the former, 0.60 and 0.57 for the latter. A worker renews a thousand leases with one statement, also
when it has kept their messages; what a killed worker had in its hands runs again within ten seconds.

Starts a Valkey and a PostgreSQL of its own (RabbitMQ is used where one answers; its queues are removed). A variant
(plain, guarded, keyed) has a worker process of its own. A run fills the variant's queue while its slots are kept,
opens the gate, and takes the rate from the queue's depth, from a tenth on. The runs alternate (plain, guarded, keyed,
keyed, guarded, plain, ...); a ratio is of two runs of one round. All settings are the shipped ones, the same for plain
Celery. Caveat: one machine, and whatever else ran on it; brokers, database and worker share its cores.

Run: .venv/bin/python benchmarks/guard.py --json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import kombu
import psutil  # type: ignore[import-untyped]

from guard_place import PATIENCE_S, POLL_S, Place

RABBITMQ = "amqp://guest:guest@127.0.0.1//"
VARIANTS = ("plain", "guarded", "keyed")
WARM_UP_JOBS = 600
MOST_JOBS = 15_000
INTERVALS = 5
KEPT_WITHIN = 2
"""Intervals after which the messages of jobs that run on are kept."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--rabbitmq", default=RABBITMQ, help="its URL (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=6, help="runs of each variant (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=5.0, help="about how long a run takes (default: %(default)s)")
    parser.add_argument("--slots", type=int, default=16, help="of a worker of the threads pool (default: %(default)s)")
    parser.add_argument("--children", type=int, default=2, help="of a worker of the prefork pool (%(default)s)")
    parser.add_argument("--only", nargs="*", choices=["threads", "prefork", "renewal", "recovery"], help="some parts")
    parser.add_argument("--brokers", nargs="*", default=["valkey", "rabbitmq"], choices=["valkey", "rabbitmq"])
    options = parser.parse_args()
    os.chdir(Path(__file__).parent)
    print((json.dumps if options.json else _table)(measure(options)))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return all figures, with the machine's load before and after."""
    measured: dict[str, Any] = {"load_1m_before": os.getloadavg()[0], "cores": os.cpu_count()}
    parts = options.only or ["threads", "prefork", "renewal", "recovery"]
    for broker in options.brokers:
        url = None if broker == "valkey" else options.rabbitmq
        if url is not None and (silent := _silence(url)) is not None:
            measured.setdefault("unavailable", {})[broker] = silent
            for figure in ("plain_ratio", "keyed_ratio", "recovery_s"):
                measured.setdefault(figure, {})[broker] = None
            continue
        with Place.open(broker_url=url) as place:
            _measure_broker(measured, place, broker, parts=parts, options=options)
    measured["load_1m_after"] = os.getloadavg()[0]
    return measured


def _measure_broker(
    measured: dict[str, Any], place: Place, broker: str, *, parts: Sequence[str], options: argparse.Namespace
) -> None:
    for pool, slots in (("threads", options.slots), ("prefork", options.children)):
        if pool in parts:
            _say(f"{broker}: throughput, {pool} with {slots} slots")
            figures = throughput(place, pool=pool, slots=slots, rounds=options.rounds, seconds=options.seconds)
            into = measured if pool == "threads" else measured.setdefault("prefork", {})
            for name, value in figures.items():
                into.setdefault(name, {})[broker] = value
    if "renewal" in parts and "renewal_statements_per_interval" not in measured:
        _say(f"{broker}: renewal with a crowd of jobs")
        measured |= renewal(place)
    if "recovery" in parts:
        _say(f"{broker}: recovery")
        measured.setdefault("recovery_s", {})[broker] = recovery(place, times=options.rounds)


def throughput(place: Place, *, pool: str, slots: int, rounds: int, seconds: float) -> dict[str, Any]:
    """Return rates and ratios of the variants, each in a worker of its own, run by turns."""
    lines = [Line(place, variant, pool=pool, slots=slots) for variant in VARIANTS]
    counts = {}
    for line in lines:
        warm = line.run(jobs=WARM_UP_JOBS)
        counts[line.variant] = min(MOST_JOBS, max(WARM_UP_JOBS, int(warm.jobs_per_s * seconds)))
    runs: dict[str, list[Run]] = {variant: [] for variant in VARIANTS}
    for number in range(rounds):
        for line in lines if number % 2 == 0 else reversed(lines):
            runs[line.variant].append(line.run(jobs=counts[line.variant]))
        _say(f"  round {number + 1}: " + ", ".join(f"{name} {each[-1]}" for name, each in runs.items()))
    rates = {variant: [run.jobs_per_s for run in each] for variant, each in runs.items()}
    place.supervisor.stop(*(f"worker-{variant}-{pool}" for variant in VARIANTS))
    return {
        "plain_ratio": _spread([one / other for one, other in zip(rates["guarded"], rates["plain"], strict=True)]),
        "keyed_ratio": _spread([one / other for one, other in zip(rates["keyed"], rates["plain"], strict=True)]),
        "jobs_per_s": {variant: _spread(each) for variant, each in rates.items()},
        "worker_cpu_ms_per_job": {variant: _spread([run.cpu_ms for run in each]) for variant, each in runs.items()},
    }


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one run came to: its rate, and the processor time of the worker's processes for each job."""

    jobs_per_s: float
    cpu_ms: float

    def __str__(self) -> str:
        return f"{self.jobs_per_s:.0f}/s ({self.cpu_ms:.2f} ms)"


class Line:
    """One variant, with its worker."""

    def __init__(self, place: Place, variant: str, *, pool: str, slots: int) -> None:
        """Start its worker."""
        self.place, self.variant, self.slots = place, variant, slots
        self._pid = place.start_worker(variant, pool=pool, slots=slots)

    def run(self, *, jobs: int) -> Run:
        """Fill the queue while all slots are kept, then let the worker go."""
        place, variant, gate = self.place, self.variant, f"gate-{uuid4().hex[:8]}"
        place.publish(f"{variant}.wait_at_gate", [(number, gate) for number in range(self.slots)])
        place.await_that(lambda: place.waiting_at(gate) == self.slots, f"{self.slots} bodies of {variant} at a gate")
        unique = uuid4().int % 10**9 * 10**6
        place.publish(f"{variant}.nothing", [(unique + number,) for number in range(jobs)])
        place.await_that(lambda: place.depth(variant) == jobs, f"{jobs} jobs of {variant} in their queue")
        place.open_gate(gate)
        # Without the first tenth, in which the pool gets under way.
        seen = [one for one in self._watched(jobs) if one[1] <= 0.9 * jobs]
        (began, first, before), (ended, last, after) = seen[0], seen[-1]
        return Run(jobs_per_s=(first - last) / (ended - began), cpu_ms=(after - before) / (first - last) * 1_000)

    def _watched(self, jobs: int) -> list[tuple[float, int, float]]:
        """Return instant, depth and processor time, again and again until the queue is empty."""
        seen: list[tuple[float, int, float]] = []
        until = time.monotonic() + PATIENCE_S
        while (depth := self.place.depth(self.variant)) > 0:
            seen.append((time.monotonic(), depth, _cpu_s(self._pid)))
            if seen[-1][0] > until:
                raise SystemExit(f"{self.variant}: {depth} of {jobs} jobs have not started within {PATIENCE_S:g} s")
            time.sleep(POLL_S)
        return seen


def _cpu_s(pid: int) -> float:
    whole = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return sum(times.user + times.system for times in (process.cpu_times() for process in whole))


def renewal(place: Place) -> dict[str, float]:
    """Return how many statements renew the leases of a thousand bodies, an interval, once their messages are kept."""
    crowd = place.app_module.CROWD
    place.start_worker("crowd", pool="threads", slots=crowd, GUARD_COUNTS_STATEMENTS="yes")
    gate = f"gate-{uuid4().hex[:8]}"
    place.publish("crowd.leased", [(number, gate) for number in range(crowd)])
    place.await_that(lambda: place.waiting_at(gate) == crowd, f"{crowd} leased bodies at a gate")
    before = len(place.lines("statements"))

    def beats() -> int:
        return sum("presence" in line for line in place.lines("statements")[before:])

    place.await_that(
        lambda: beats() > KEPT_WITHIN + INTERVALS, f"{INTERVALS} intervals of a worker with {crowd} bodies"
    )
    # From one refreshing of the presence to another: whole intervals.
    lines = place.lines("statements")[before:]
    marks = [number for number, line in enumerate(lines) if "presence" in line]
    whole = lines[marks[KEPT_WITHIN] : marks[KEPT_WITHIN + INTERVALS]]
    live = sum(place.sw.store.runs.lease(f"c:{number}") is not None for number in range(crowd))
    place.open_gate(gate)
    place.stop_worker("crowd-threads")
    return {
        "renewal_statements_per_interval": sum("leases" in line for line in whole) / INTERVALS,
        "beat_statements_per_interval": len(whole) / INTERVALS,
        "leases_alive": live,
    }


def recovery(place: Place, *, times: int) -> dict[str, float]:
    """Return the seconds from kill -9 of a whole worker until its job's body starts in another."""
    mortal = partial(place.start_worker, "mortal", pool="prefork", slots=1)
    pids = {f"mortal{number}": mortal(name=f"mortal{number}") for number in range(2)}
    took = []
    for number in range(times):
        gate = f"gate-{uuid4().hex[:8]}"
        place.publish("mortal.say_start", [(gate,)])
        place.await_that(lambda gate=gate: len(place.lines(f"{gate}.started")) == 1, "a body in a worker")  # type: ignore[misc]
        body = int(place.lines(f"{gate}.started")[0].split()[1])
        above = {body, *(one.pid for one in psutil.Process(body).parents())}
        name = next(name for name, pid in pids.items() if pid in above)
        killed_at = _kill_whole(pids.pop(name))
        place.bury_one()
        place.await_that(lambda gate=gate: len(place.lines(f"{gate}.started")) > 1, "the body once more")  # type: ignore[misc]
        took.append(float(place.lines(f"{gate}.started")[1].split()[0]) - killed_at)
        _say(f"  killed, started again after {took[-1]:.1f} s")
        place.open_gate(gate)
        if number + 1 < times:
            again = f"mortal{number + 2}"
            pids[again] = mortal(name=again)
    for name in pids:
        place.stop_worker(name)
    return _spread(took)


def _kill_whole(pid: int) -> float:
    whole = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    at = time.time()
    for process in whole:
        process.kill()
    return at


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {
        "median": round(statistics.median(values), 3),
        "least": round(min(values), 3),
        "most": round(max(values), 3),
        "runs": len(values),
    }


def _silence(url: str) -> str | None:
    """Return why a broker cannot be used; None where it answers."""
    try:
        with kombu.Connection(url, connect_timeout=3) as connection:
            connection.connect()
    except Exception as error:  # noqa: BLE001  # whatever its client raises
        return f"{type(error).__name__}: {error}"
    return None


def _say(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")


def _table(measured: dict[str, Any]) -> str:
    lines = []
    for name, value in measured.items():
        if isinstance(value, dict):
            lines += [f"{name:34} {broker:10} {json.dumps(figures)}" for broker, figures in value.items()]
        else:
            lines.append(f"{name:34} {value}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()

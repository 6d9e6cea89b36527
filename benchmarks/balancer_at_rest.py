"""Claim: a balancer with nothing to do takes less than 1 % of a core.

Starts Valkey, PostgreSQL and a balancer with seven lanes and twenty entries (none due for hours), lets it settle, and
measures its processor time over the wall clock. Caveat: one machine, and whatever else ran on it; the probe reads
every five seconds, as by default.

Run: .venv/bin/python benchmarks/balancer_at_rest.py --seconds 120 --json
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from slackwater import Slackwater, processes
from slackwater.local import Data, RunFolder, Servers, Supervisor

APP = "rest_app"
WARM_UP_S = 10.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120.0, help="how long to measure")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    measured = measure(options.seconds)
    if options.json:
        print(json.dumps(measured))
    else:
        print(f"balancer at rest: {measured['core_share']:.2%} of a core over {options.seconds:g} s")


def measure(seconds: float) -> dict[str, float]:
    """Return the share of a core that the balancer took, and the machine's load meanwhile."""
    os.chdir(Path(__file__).parent)
    with (
        tempfile.TemporaryDirectory() as folder,
        RunFolder(Path(folder) / "run", now=datetime.now(UTC), data=Data.DISCARD) as run,
        Supervisor(run) as supervisor,
    ):
        env = processes.environment(Servers.start(run.path, supervisor), base={})
        os.environ.update(env)
        _application().store.migrate()
        pid = supervisor.start(processes.balancer(APP, env=env, logs=run.logs))
        time.sleep(WARM_UP_S)
        process = psutil.Process(pid)
        before, began = _cpu(process), time.monotonic()
        time.sleep(seconds)
        used, took = _cpu(process) - before, time.monotonic() - began
        if (died := supervisor.poll()) is not None:
            raise SystemExit(died.sentence)
        return {"core_share": used / took, "seconds": took, "load_1m": os.getloadavg()[0]}


def _application() -> Slackwater:
    from rest_app import sw

    return sw


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    main()

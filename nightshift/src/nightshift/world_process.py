"""Starting the outside world as a process of the night."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from nightshift.errors import NightError
from nightshift.tokens import Credentials
from nightshift.world.limiter import RateLimit
from slackwater.errors import LocalServiceError
from slackwater.local import Child, RunFolder, StartInterrupted, Supervisor

RATE_LIMIT = RateLimit(calls_per_second=12.0, burst=6)
READY = re.compile(r'^\{"ready": true')
NAME = "world"
CREDENTIALS = "application.json"


@dataclass(frozen=True, kw_only=True)
class World:
    """A world that serves.

    Attributes:
        url: Where.
        credentials: File of the application that may call it.
        books: Its own books.
        rate_limit: The aggregator's.
    """

    url: str
    credentials: Path
    books: Path
    rate_limit: RateLimit


def start_world(
    supervisor: Supervisor, folder: RunFolder, *, seed: int, day: date, port: int, faults: Path | None = None
) -> World:
    """Start the outside world, with new credentials in the night's folder, and wait until it serves.

    Args:
        supervisor: Of the night's processes.
        folder: The night's folder.
        seed: Of all that the world draws.
        day: The world's date.
        port: Port on loopback, 0 for a free one.
        faults: Script of faults, or None.

    Raises:
        NightError: It cannot; says why in its own words.
    """
    credentials, books, log = folder.path / CREDENTIALS, folder.path / "world.sqlite", folder.log(NAME)
    Credentials.new().write(credentials)
    for left in folder.path.glob("world.sqlite*"):
        left.unlink()
    argv = [
        sys.executable,
        "-m",
        "nightshift.world",
        f"--port={port}",
        f"--books={books}",
        f"--seed={seed}",
        f"--today={day.isoformat()}",
        f"--calls-per-second={RATE_LIMIT.calls_per_second}",
        f"--burst={RATE_LIMIT.burst}",
        f"--credentials={credentials}",
        "--consents-required",
    ]
    if faults is not None:
        argv.append(f"--faults={faults}")
    child = Child(name=NAME, argv=tuple(argv), env={}, log_path=log, stop_within=timedelta(seconds=5))
    try:
        supervisor.start(child, ready=READY)
    except StartInterrupted:
        raise
    except LocalServiceError as error:
        raise NightError(f"the outside world did not start: {_last_words(log) or error}") from error
    lines = [line for line in log.read_text().splitlines() if READY.search(line)]
    return World(url=str(json.loads(lines[-1])["url"]), credentials=credentials, books=books, rate_limit=RATE_LIMIT)


def _last_words(log: Path) -> str:
    lines = [line.removeprefix("Error: ") for line in log.read_text().splitlines() if line.strip()]
    return lines[-1].replace("--port", "--world-port") if lines else ""  # the night's name of that option

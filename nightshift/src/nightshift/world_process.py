"""Starting the outside world as a process of the night."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from nightshift.errors import NightError
from nightshift.tokens import Credentials
from nightshift.world.kinds import DIED_EXIT_CODE
from nightshift.world.limiter import RateLimit
from slackwater.errors import LocalServiceError
from slackwater.local import Child, ChildDied, RunFolder, StartInterrupted, Supervisor

RATE_LIMIT = RateLimit(calls_per_second=12.0, burst=6)
READY = re.compile(r'^\{"ready": true')
NAME = "world"
CREDENTIALS, REGISTRATION = "application.json", "registration.json"


@dataclass(frozen=True, kw_only=True)
class World:
    """A world that serves.

    Attributes:
        url: Where.
        credentials: File of what the application that may call it shows.
        books: Its own books.
        rate_limit: The aggregator's.
        again: What starts it again at the same place, with its books, when it has died; None for a world that is not
            meant to.
    """

    url: str
    credentials: Path
    books: Path
    rate_limit: RateLimit
    again: Child | None = None


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
    ours, registration = Credentials.new(), folder.path / REGISTRATION
    ours.write(credentials)
    ours.registration.write(registration)
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
        f"--registration={registration}",
        "--consents-required",
    ]
    if faults is not None:
        argv.append(f"--faults={faults}")
    child = Child(name=NAME, argv=tuple(argv), env={}, log_path=log, stop_within=timedelta(seconds=5))
    _start(supervisor, child)
    lines = [line for line in log.read_text().splitlines() if READY.search(line)]
    url = str(json.loads(lines[-1])["url"])
    argv[argv.index(f"--port={port}")] = f"--port={urlsplit(url).port}"
    return World(
        url=url,
        credentials=credentials,
        books=books,
        rate_limit=RATE_LIMIT,
        again=None if faults is None else replace(child, argv=tuple(argv)),
    )


def revive_world(died: ChildDied, world: World, supervisor: Supervisor, *, tell: Callable[[str], None]) -> bool:
    """Start a world again that has died of its script of faults; it goes on with the books that it left.

    Args:
        died: Who died.
        world: The world.
        supervisor: Of the night's processes.
        tell: Told of it.

    Returns:
        False where it is not the world that died, or not of its script: then nothing is started.

    Raises:
        NightError: It cannot be started; says why in its own words.
    """
    if died.name != NAME or died.exit_code != DIED_EXIT_CODE or world.again is None:
        return False
    _start(supervisor, world.again)
    tell("the outside world died, as its script of faults says; it was started again")
    return True


def _start(supervisor: Supervisor, child: Child) -> None:
    try:
        supervisor.start(child, ready=READY)
    except StartInterrupted:
        raise
    except LocalServiceError as error:
        raise NightError(f"the outside world did not start: {_last_words(child.log_path) or error}") from error


def _last_words(log: Path) -> str:
    lines = [line.removeprefix("Error: ") for line in log.read_text().splitlines() if line.strip()]
    return lines[-1].replace("--port", "--world-port") if lines else ""  # the night's name of that option

"""A world for tests: the real process on a free port, with its books in a folder of the test."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from nightshift.tokens import AGGREGATOR, GATEWAY, LONGEST_LIFETIME, Credentials, TokenSource, sign

CREDENTIALS = Credentials.new()
TOKEN = sign(CREDENTIALS, audience=(AGGREGATOR, GATEWAY), at=dt.datetime.now(dt.UTC), lifetime=LONGEST_LIFETIME)
TOKENS = TokenSource(CREDENTIALS, audience=AGGREGATOR)
FILING_TOKENS = TokenSource(CREDENTIALS, audience=GATEWAY)
QUICK: Mapping[str, str] = {
    "--seed": "7",
    "--today": "2026-11-30",
    "--calls-per-second": "1000",
    "--burst": "1000",
    "--aggregator-median-s": "0.01",
    "--gateway-median-s": "0.01",
    "--throttled-ratio": "0",
    "--failed-ratio": "0",
}
"""Options of a world that answers at once and never fails."""


@dataclass(frozen=True, kw_only=True)
class RunningWorld:
    """A world that serves.

    Attributes:
        url: Where.
        books: Its books.
        process: The process, to be signalled or waited for.
    """

    url: str
    books: Path
    process: subprocess.Popen[str]


def write_faults(folder: Path, *rules: Mapping[str, object]) -> Mapping[str, str]:
    """Write a script of faults into a folder; return the options of a world that follows it."""
    path = folder / "faults.json"
    path.write_text(json.dumps({"faults": [dict(rule) for rule in rules]}))
    return {"--faults": str(path)}


def world_command(books: Path, options: Mapping[str, str]) -> list[str]:
    """Build the command line of a quick world, with some options changed; an empty value makes an option a flag."""
    there = next(folder for folder in books.parents if folder.is_dir())
    registration = there / f"{books.name}.registration"
    CREDENTIALS.registration.write(registration)
    chosen = {"--port": "0", "--registration": str(registration), **QUICK, **options}
    pairs = [text for pair in chosen.items() for text in pair if text]
    return [sys.executable, "-m", "nightshift.world", "--books", str(books), *pairs]


@contextlib.contextmanager
def running_world(books: Path, options: Mapping[str, str] | None = None) -> Iterator[RunningWorld]:
    """Start a world and end it afterwards.

    Args:
        books: File for its books.
        options: Command line options that differ from `QUICK`.

    Yields:
        The world, once it says that it serves.

    Raises:
        RuntimeError: It ended instead of serving; what it said is on stderr.
    """
    process = subprocess.Popen(
        world_command(books, options or {}),
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                raise RuntimeError(f"the world ended with exit code {process.wait()} before it served")
            yield RunningWorld(url=json.loads(line)["url"], books=books, process=process)
        finally:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()

"""The real command in a process of its own: started, watched, ended, and what it leaves behind."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil  # type: ignore[import-untyped]
from tests.programs import Program

from nightshift import journal
from nightshift.world.books import BooksError, read_calls
from nightshift.world.kinds import PathKind
from slackwater.adapters.embedded import processes
from slackwater.adapters.embedded.process_record import read_record

STARTS_WITHIN_S = 60.0
ENDS_WITHIN_S = 110.0
GONE_WITHIN = timedelta(seconds=10)
LOOK_EVERY_S = 0.3
"""Each look lists all processes there are."""
_OF_OTHERS = re.compile(r"^(CELERY|SLACKWATER|NIGHTSHIFT)_|^COLUMNS$")


@dataclass
class RunningNight:
    """A night that was started.

    Attributes:
        popen: Its process.
        folder: Its folder.
        report: The JSON file asked for.
        output: File with its standard output.
        complaints: File with its standard error.
        mark: Name that the environment of all its processes bears.
        family: All descendants seen so far.
    """

    popen: subprocess.Popen[str] | Program
    folder: Path
    report: Path
    output: Path
    complaints: Path
    mark: str
    family: set[psutil.Process] = field(default_factory=set)

    @property
    def stdout(self) -> str:
        return self.output.read_text(encoding="utf-8")

    @property
    def stderr(self) -> str:
        return self.complaints.read_text(encoding="utf-8")

    @cached_property
    def json(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.report.read_text(encoding="utf-8"))
        return content

    def children(self) -> Mapping[str, int]:
        """Return the pids of its children by name, as it has written them down."""
        record = read_record(self.folder / "processes.json")
        return {} if record is None else {each.name: each.process.pid for each in record.children}

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of a kind in its journals."""
        return [event for event in journal.read(self.folder / "journal") if event["event"] == kind]

    def look(self) -> None:
        """Note its descendants of now."""
        try:
            self.family |= set(psutil.Process(self.popen.pid).children(recursive=True))
        except psutil.NoSuchProcess:
            return

    def until(self, condition: Callable[[], bool], *, within_s: float = STARTS_WITHIN_S) -> None:
        """Wait until a condition holds while the night runs."""
        deadline = time.monotonic() + within_s
        while not condition():
            self.look()
            assert self.popen.poll() is None, f"it has ended: {self.popen.returncode} {self.stderr} {self.stdout}"
            assert time.monotonic() < deadline, f"it did not come about in time: {self.stderr} {self.stdout}"
            time.sleep(LOOK_EVERY_S)
        self.look()

    def until_in_the_middle(self) -> None:
        """Wait until somebody has called the outside world: all the night's processes are at work."""
        self.until(self._has_called)

    def spoil_receipts(self, *, but: int) -> None:
        """Once they are drawn, leave few receipts that take a reader more than a moment: reading is most of a night.

        Also, a reader that is killed then is soon at work again.
        """
        self.until(lambda: "books: " in self.stdout)
        receipts = sorted(path for path in (self.folder / "receipts").rglob("*") if path.is_file())
        assert len(receipts) > but
        for path in receipts[but:]:
            path.write_bytes(b"no picture")

    def wait(self, within_s: float = ENDS_WITHIN_S) -> int:
        """Wait until it ends; return its exit code."""
        deadline = time.monotonic() + within_s
        while self.popen.poll() is None:
            self.look()
            assert time.monotonic() < deadline, f"it does not end: {self.stderr} {self.stdout}"
            time.sleep(LOOK_EVERY_S)
        return self.popen.wait()

    def left_running(self, within: timedelta = GONE_WITHIN) -> list[str]:
        """Return what of it still runs: descendants, bearers of its mark, and whatever names its folder."""
        those = self.family | set(processes.marked(self.mark)) | set(_naming(self.folder))
        left = processes.wait_until_gone(those, within=within)
        return [f"{each.pid} {each.name()}" for each in left]

    def told(self) -> str:
        """Return the one line that it wrote to standard error."""
        lines = self.stderr.splitlines()
        assert len(lines) == 1, self.stderr
        assert lines[0].startswith("nightshift: "), lines
        return lines[0]

    def _has_called(self) -> bool:
        try:
            calls = read_calls(self.folder / "world.sqlite")
        except BooksError:
            return False
        return any(call.kind is not PathKind.SESSION for call in calls)  # consents are given before the night


def start(
    folder: Path,
    *options: str,
    output: Path,
    variables: Mapping[str, str],
    without: frozenset[str] = frozenset(),
    launcher: Sequence[str] = (),
) -> RunningNight:
    """Start the shortest night there is.

    Args:
        folder: The night's folder.
        options: More options; of those named twice the last one holds.
        output: Folder for what it prints, and for its report.
        variables: More variables of its environment.
        without: Variables that it shall not have.
        launcher: Line that runs the night's as its last words, in the same process.
    """
    run = uuid4().hex
    output.mkdir(exist_ok=True)
    report = output / f"{run}.json"
    known = {name: value for name, value in os.environ.items() if name not in without and not _OF_OTHERS.search(name)}
    few = {"NIGHTSHIFT_READERS": "1"}  # loading what reads is the most work that a night's start is
    fixed = ["--minutes=0.5", f"--folder={folder}", f"--report={report}"]
    told, complained = output / f"{run}.out", output / f"{run}.err"
    words = ("nightshift", "night", *fixed, *options)
    env = {**known, **few, **variables, **processes.mark_for(run, os.environ)}
    popen = (
        _launched(launcher, words, env, told, complained)
        if launcher
        else Program(words, env=env, log=told, errors=complained)
    )
    return RunningNight(popen=popen, folder=folder, report=report, output=told, complaints=complained, mark=run)


def _launched(
    launcher: Sequence[str], words: Sequence[str], env: Mapping[str, str], told: Path, complained: Path
) -> subprocess.Popen[str]:
    with told.open("w") as out, complained.open("w") as err:
        line = [*launcher, sys.executable, "-m", *words]
        return subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env, text=True)


def _naming(folder: Path) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), process.cwd()]
        except (psutil.Error, OSError):
            continue
        if process.pid != os.getpid() and any(str(folder) in word for word in words):
            yield process

"""Runs of their own, in this process and in one that can be killed."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from slackwater.local import Data, RunFolder, Supervisor

Eventually = Callable[[Callable[[], bool]], None]
StartRun = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunFolder]:
    with RunFolder(tmp_path / "run", data=Data.DISCARD) as folder:
        yield folder


@pytest.fixture
def supervisor(run: RunFolder) -> Iterator[Supervisor]:
    with Supervisor(run) as watching:
        yield watching


@pytest.fixture
def eventually() -> Eventually:
    return _eventually


@pytest.fixture
def runs() -> Callable[[int], bool]:
    """Tell whether a process runs: neither gone nor a zombie."""
    return _runs


@pytest.fixture
def start_run() -> Iterator[StartRun]:
    """Start `killable_run.py` on a folder and wait for the line in which it names its processes."""
    with ExitStack() as stack:

        def start(folder: Path, *children: str) -> "subprocess.Popen[str]":
            line = [sys.executable, str(Path(__file__).with_name("killable_run.py")), str(folder), *children]
            process = stack.enter_context(subprocess.Popen(line, stdout=subprocess.PIPE, text=True))
            stack.callback(process.kill)
            return process

        yield start


def _eventually(condition: Callable[[], bool], within_s: float = 15) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False

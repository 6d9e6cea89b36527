"""Runs of their own, in this process and in one that can be killed."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
from tests import waiting

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
    return partial(waiting.eventually, within_s=15)


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


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False

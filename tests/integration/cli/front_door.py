"""The command line as a person has it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil  # type: ignore[import-untyped]
from tests import waiting

APP = "tests.integration.cli.shop"
ROOT = Path(__file__).parents[3]

eventually = partial(waiting.eventually, within_s=30)


@dataclass(frozen=True, kw_only=True)
class FrontDoor:
    """Runs the command line in one environment."""

    env: Mapping[str, str]

    def with_env(self, **env: str) -> FrontDoor:
        return FrontDoor(env={**self.env, **env})

    def run(self, *words: str, program: tuple[str, ...] = ("slackwater",)) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        line = [sys.executable, "-m", *program, *words]
        return subprocess.run(line, cwd=ROOT, env=self._env, capture_output=True, text=True, timeout=60, check=False)

    @contextmanager
    def start(self, *words: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
        """Run a command beside the block, and make sure that it has ended after it."""
        line = [sys.executable, "-m", "slackwater", "-v", "-A", APP, *words]
        with log.open("ab") as file, subprocess.Popen(line, cwd=ROOT, env=self._env, stdout=file, stderr=file) as run:
            try:
                yield run
            finally:
                run.terminate()
                run.wait(60)

    @property
    def _env(self) -> dict[str, str]:
        ours = ("CELERY_", "SLACKWATER_", "SHOP_")
        return {name: value for name, value in os.environ.items() if not name.startswith(ours)} | dict(self.env)


def family(pid: int) -> list[psutil.Process]:
    """Return a process and all that came from it."""
    parent = psutil.Process(pid)
    return [parent, *parent.children(recursive=True)]


def runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False

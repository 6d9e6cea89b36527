"""The command line as a person has it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil  # type: ignore[import-untyped]
from tests import programs, waiting
from tests.programs import Program

APP = "tests.integration.cli.shop"

eventually = partial(waiting.eventually, within_s=30)


@dataclass(frozen=True, kw_only=True)
class FrontDoor:
    """Runs the command line in one environment."""

    env: Mapping[str, str]

    def with_env(self, **env: str) -> FrontDoor:
        return FrontDoor(env={**self.env, **env})

    def run(self, *words: str, program: str = "slackwater") -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return programs.finished(program, *words, env=self._env)

    @contextmanager
    def start(self, *words: str, log: Path) -> Iterator[Program]:
        """Run a command beside the block, and make sure that it has ended after it."""
        with programs.running("slackwater", "-v", "-A", APP, *words, env=self._env, log=log) as run:
            yield run

    @property
    def _env(self) -> dict[str, str]:
        ours = ("CELERY_", "SLACKWATER_", "SHOP_")
        return {name: value for name, value in os.environ.items() if not name.startswith(ours)} | dict(self.env)


def family(pid: int) -> list[psutil.Process]:
    """Return a process and all that came from it; nothing of one that has ended."""
    try:
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False

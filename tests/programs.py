"""Programs of the tests (workers, balancers), started as forks of one process that has loaded their libraries.

Half of a worker's start is loading Celery, SQLAlchemy and the rest, and the tests start hundreds. What is forked has
loaded libraries alone: no application, no setting, no connection.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ENDS_WITHIN_S = 60
LIBRARIES = (
    "pytest",  # what a plain run of pytest has as its main module, which every fork asks for
    "celery.bin.celery",
    "celery.apps.worker",
    "celery.concurrency.prefork",
    "celery.concurrency.thread",
    "kombu.transport.pyamqp",
    "kombu.transport.redis",
    "sqlalchemy.dialects.postgresql.psycopg",
    "slackwater.cli.main",
    "slackwater.compose",
)


class Program:
    """A program that runs, in the words of `subprocess.Popen`."""

    def __init__(self, words: tuple[str, ...], *, env: Mapping[str, str], log: Path) -> None:
        """Start `python -m WORDS` in the project's folder.

        Args:
            words: A module's name, and its arguments.
            env: All of its environment.
            log: File to which both its outputs are appended.
        """
        log.touch()
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(LIBRARIES))
        self._process = context.Process(target=_be, args=(words, dict(env), str(log)))
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if (code := self._process.exitcode) is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@contextmanager
def running(*words: str, env: Mapping[str, str], log: Path) -> Iterator[Program]:
    """Run `python -m WORDS` beside the block; SIGTERM at its end, and SIGKILL if that does not help."""
    program = Program(words, env=env, log=log)
    try:
        yield program
    finally:
        program.terminate()
        try:
            program.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()


def _be(words: tuple[str, ...], env: dict[str, str], log: str) -> None:
    """Become the program."""
    for number, path, flags in ((0, os.devnull, os.O_RDONLY), (1, log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)):
        opened = os.open(path, flags, 0o644)
        os.dup2(opened, number)
        os.close(opened)
    os.dup2(1, 2)
    # The streams were made over what the process that forked had.
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        stream: Any = os.fdopen(os.dup(number), "r" if number == 0 else "w", buffering=1)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(ROOT)
    module, *arguments = words
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        atexit._run_exitfuncs()  # a fork ends without them

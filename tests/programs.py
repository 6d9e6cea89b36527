"""Programs of the tests (workers, commands, nights), started as forks of one process that has loaded their libraries.

Half of a worker's start, and nearly all of a command's, is loading Celery, SQLAlchemy and the rest, and the tests start
hundreds. What is forked has loaded libraries alone: no application, no setting, no connection.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from slackwater.adapters.embedded.parent_death import follow_parent

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
    "slackwater.cli.dead",
    "slackwater.cli.status",
    "slackwater.compose",
    "sqlalchemy.orm",
    "nightshift.cli",
    "nightshift.night",
)


class Program:
    """A program that runs, in the words of `subprocess.Popen`."""

    def __init__(self, words: Sequence[str], *, env: Mapping[str, str], log: Path, errors: Path | None = None) -> None:
        """Start `python -m WORDS` in the project's folder.

        Args:
            words: A module's name, and its arguments.
            env: All of its environment.
            log: File to which its output is appended.
            errors: File to which its standard error is appended; the same by default.
        """
        for file in (log, errors or log):
            file.touch()
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(LIBRARIES))
        self._process = context.Process(target=_be, args=(words, dict(env), str(log), str(errors or log)))
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


def finished(*words: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `python -m WORDS` to its end."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        program = Program(words, env=env, log=out, errors=err)
        try:
            code = program.wait(ENDS_WITHIN_S)
        finally:
            program.kill()
        return subprocess.CompletedProcess(words, code, out.read_text("utf-8"), err.read_text("utf-8"))


def _be(words: Sequence[str], env: dict[str, str], log: str, errors: str) -> None:
    """Become the program; a run of tests that is killed does not leave it behind."""
    follow_parent(with_signal=signal.SIGTERM)
    appended = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    for number, path, flags in ((0, os.devnull, os.O_RDONLY), (1, log, appended), (2, errors, appended)):
        opened = os.open(path, flags, 0o644)
        os.dup2(opened, number)
        os.close(opened)
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

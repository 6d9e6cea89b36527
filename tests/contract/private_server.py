"""A PostgreSQL that a test may stop, freeze and kill."""

from __future__ import annotations

import os
import signal
import time

import psutil  # type: ignore[import-untyped]

from slackwater.local import PostgreSQL, RunFolder, Supervisor


class PrivateServer:
    """A server of a test's own."""

    def __init__(self, run: RunFolder, supervisor: Supervisor) -> None:
        self._server, self._supervisor = PostgreSQL(run), supervisor

    def start(self) -> str:
        return self._server.start(self._supervisor)

    def stop(self) -> None:
        self._supervisor.stop(self._server.name)

    def kill(self) -> None:
        os.kill(self._supervisor.pids[self._server.name], signal.SIGKILL)
        self._await_death()

    def kill_all(self) -> None:
        """Kill every process of it, the one that writes its log too, before any can tell another."""
        for each in self._freeze():
            each.kill()
        self._await_death()

    def freeze(self) -> None:
        self._freeze()

    def freeze_log_writer(self) -> None:
        """Stop the process that writes the log of commits which did not wait for the disk."""
        [writer] = [each for each in self._processes() if "walwriter" in " ".join(each.cmdline())]
        writer.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        for each in self._processes():
            each.send_signal(signal.SIGCONT)

    def _freeze(self) -> list[psutil.Process]:
        self._processes()[0].send_signal(signal.SIGSTOP)  # it starts no more
        found = self._processes()
        for each in found[1:]:
            each.send_signal(signal.SIGSTOP)
        return found

    def _processes(self) -> list[psutil.Process]:
        first = psutil.Process(self._supervisor.pids[self._server.name])
        return [first, *first.children(recursive=True)]

    def _await_death(self) -> None:
        deadline = time.monotonic() + 20
        while self._supervisor.poll() is None:
            assert time.monotonic() < deadline, "the killed server is still there"

"""Start, watch and stop child processes, and leave none behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import IO, Self

import psutil  # type: ignore[import-untyped]

from slackwater.adapters.embedded import processes
from slackwater.adapters.embedded.child import Child, ChildDied, ChildNotReady, Ready, death_of
from slackwater.adapters.embedded.parent_death import launch_line
from slackwater.adapters.embedded.process_record import ProcessRecord, RecordedProcess, write_record
from slackwater.adapters.embedded.processes import ProcessId
from slackwater.adapters.embedded.run_folder import RunFolder
from slackwater.adapters.embedded.stop_signals import StopSignals
from slackwater.errors import LocalServiceError

_LOOK_EVERY_S = 0.02
_TERM_WITHIN = timedelta(seconds=2)
_REAPED_WITHIN_S = 1.0
_READY_WITHIN = timedelta(seconds=30)


class StartInterrupted(LocalServiceError):
    """This process was asked to stop while it waited for a child to become ready."""


@dataclass(frozen=True)
class _Running:
    child: Child
    popen: subprocess.Popen[bytes]
    process: ProcessId
    log_began_at: int


class Supervisor:
    """Child processes of one run, each in its own session: a terminal's Ctrl-C reaches them only through here.

    A context manager that stops them all. On Linux they also die with this process if it is killed; what survives that
    (elsewhere, or a child that undoes it) is ended by the next run in the folder, from the record kept there.

    For the main thread, and one to a folder. Nobody else may reap this process's children (no `waitpid(-1)`, no ignored
    SIGCHLD).
    """

    def __init__(self, folder: RunFolder, *, interrupted: Callable[[], bool] = lambda: False) -> None:
        """Watch over nothing yet.

        Args:
            folder: Where the record of the processes is kept; held by this process.
            interrupted: Asked while waiting for readiness; True ends the wait with `StartInterrupted`.
        """
        self._folder = folder
        self._interrupted = interrupted
        self._running: dict[str, _Running] = {}
        self._run = uuid.uuid4().hex
        write_record(folder.record, ProcessRecord(run=self._run))

    @property
    def folder(self) -> RunFolder:
        """Return the run's folder."""
        return self._folder

    @property
    def pids(self) -> Mapping[str, int]:
        """Return the pids of the children that were started and are not known to have ended, by name."""
        return {name: each.popen.pid for name, each in self._running.items()}

    def start(self, child: Child, *, ready: Ready | None = None, within: timedelta = _READY_WITHIN) -> int:
        """Start a child and wait until it is ready.

        Args:
            child: What to start.
            ready: A question that answers True once it is ready, or a pattern looked for in what it writes; None does
                not wait.
            within: How long that may take.

        Returns:
            Its pid.

        Raises:
            ChildNotReady: It ended, or took too long (and was stopped).
            StartInterrupted: This process was asked to stop meanwhile (the child was stopped).
            LocalServiceError: There is no such program, the name is in use, or this is not the main thread.
        """
        self._refuse(child)
        running = self._spawn(child)
        try:
            if ready is not None:
                self._await_readiness(running, ready, within)
        except BaseException:
            self.stop(child.name)
            raise
        return running.popen.pid

    def poll(self) -> ChildDied | None:
        """Return a child that died, each once, the first started first; what is left of its session is killed."""
        dead = (each for each in self._running.values() if not processes.child_runs(each.popen.pid))
        first = next(dead, None)
        return None if first is None else self._bury(first)

    def stop(self, *names: str) -> None:
        """Stop children side by side, and what is left of their sessions; names that do not run are passed over.

        Without names: all, one by one, the last one first.
        """
        if not names:
            self.stop_all()
            return
        with _hurrying() as hurry:
            self._stop([self._running[name] for name in names if name in self._running], hurry)

    def stop_all(self) -> None:
        """Stop all children, the last one first, and whatever else bears this run's mark."""
        with _hurrying() as hurry:
            for running in reversed(list(self._running.values())):
                self._stop([running], hurry)
            processes.end(processes.marked(self._run), term_within=_term_within(hurry))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_all()

    def _refuse(self, child: Child) -> None:
        if not _in_main_thread():
            thread = threading.current_thread().name
            raise LocalServiceError(
                f"cannot start {child.name} in thread {thread}: the kernel would end it with that thread; "
                "start children in the main thread"
            )
        if child.name in self._running:
            raise LocalServiceError(f"cannot start {child.name}: a child of this name runs already; stop it first")

    def _spawn(self, child: Child) -> _Running:
        environ = {**os.environ, **child.env}
        environ |= processes.mark_for(self._run, environ)
        program = _program(child, environ)
        line = launch_line([program, *child.argv[1:]], at_parents_death=child.at_parents_death, user=child.user)
        with _log_of(child) as log:
            popen = subprocess.Popen(
                line,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=child.cwd,
                env=environ,
                start_new_session=True,
            )
            began_at = log.tell()
        process = processes.identify(popen.pid)
        assert process is not None, "a child that nobody has reaped has an identity"  # noqa: S101
        running = _Running(child, popen, process, began_at)
        self._running[child.name] = running
        self._record()
        return running

    def _await_readiness(self, running: _Running, ready: Ready, within: timedelta) -> None:
        deadline = time.monotonic() + within.total_seconds()
        while not _is_ready(running, ready):
            if not processes.child_runs(running.popen.pid):
                raise ChildNotReady.ended(self._bury(running))
            if self._interrupted():
                raise StartInterrupted(f"asked to stop while {running.child.name} was starting")
            if time.monotonic() >= deadline:
                self.stop(running.child.name)
                raise ChildNotReady.late(running.child, within)
            time.sleep(_LOOK_EVERY_S)

    def _stop(self, those: list[_Running], hurry: Callable[[], bool]) -> None:
        began, members = time.monotonic(), _members(those)
        for each in those:
            processes.signal_child(each.popen.pid, each.child.stop_signal)
        processes.wake(members)
        for each in those:
            until = began + each.child.stop_within.total_seconds()
            while processes.child_runs(each.popen.pid) and time.monotonic() < until and not hurry():
                time.sleep(_LOOK_EVERY_S)
        # Those of before too: who has lost its parent meanwhile is not found any more.
        processes.end(members | _members(those), term_within=_term_within(hurry))
        for each in those:
            self._reap(each)

    def _bury(self, dead: _Running) -> ChildDied:
        """Kill what is left of a dead child's session (its pid is still its own, since nobody reaped it), then reap."""
        processes.end(processes.session_of(dead.popen.pid), term_within=timedelta(0))
        return death_of(dead.child, pid=dead.popen.pid, return_code=self._reap(dead))

    def _reap(self, ended: _Running) -> int:
        try:
            return_code = ended.popen.wait(_REAPED_WITHIN_S)
        except subprocess.TimeoutExpired:  # killed, and stuck in the kernel: nothing more can be done to it
            return_code = -signal.SIGKILL
        del self._running[ended.child.name]
        self._record()
        return return_code

    def _record(self) -> None:
        children = tuple(
            RecordedProcess(name=name, process=each.process, stop_signal=each.child.stop_signal)
            for name, each in self._running.items()
        )
        # A full disk must not keep us from stopping; the record's first state names the run, whose mark is enough.
        with suppress(OSError):
            write_record(self._folder.record, ProcessRecord(run=self._run, children=children))


def _members(those: list[_Running]) -> set[psutil.Process]:
    """Return the processes of some children: their sessions, and their descendants in whatever session."""
    return {
        member
        for each in those
        # PostgreSQL's sessions write over their environment, mark and all: one that hangs is found by its parent.
        for member in (*processes.session_of(each.popen.pid), *processes.descendants_of(each.popen.pid))
    }


@contextmanager
def _hurrying() -> Iterator[Callable[[], bool]]:
    """Catch signals while we stop; the first one means: at once."""
    if not _in_main_thread():
        yield lambda: False
        return
    with StopSignals() as more:
        yield lambda: more.requested


def _term_within(hurry: Callable[[], bool]) -> timedelta:
    return timedelta(0) if hurry() else _TERM_WITHIN


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _program(child: Child, environ: Mapping[str, str]) -> str:
    found = shutil.which(child.argv[0], path=environ.get("PATH"))
    if found is None:
        raise LocalServiceError(
            f"cannot start {child.name}: there is no program {child.argv[0]!r}; install it, or give its full path"
        )
    return found


def _log_of(child: Child) -> IO[bytes]:
    try:
        return child.log_path.open("ab")
    except OSError as error:
        raise LocalServiceError(
            f"cannot start {child.name}: its log {child.log_path} cannot be written ({error.strerror}); "
            "give it a folder that can"
        ) from error


def _is_ready(running: _Running, ready: Ready) -> bool:
    if not isinstance(ready, re.Pattern):
        return ready()
    with running.child.log_path.open("rb") as log:
        log.seek(running.log_began_at)
        written = log.read().decode(errors="replace")
    # The last line may be half written.
    return any(ready.search(line) for line in written.splitlines(keepends=True) if line.endswith("\n"))

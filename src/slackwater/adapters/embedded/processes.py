"""Processes of this machine: who they are, whether they live, whose they are, and how they end.

A pid alone names nobody, since the system gives it to somebody else later on: a process is known by its pid together
with the time of its creation, or by the mark that its run left in its environment. It lives only if its state says so:
a zombie still has its pid, and where nobody reaps it keeps it for ever.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import psutil  # type: ignore[import-untyped]

MARK = "_SLACKWATER_RUN"
"""Variable that names the runs which a process belongs to, outermost first, joined by colons."""

_SAME_TIME_S = 2.0  # the system's idea of its own boot moves by a second when its clock is set
_LOOK_EVERY_S = 0.02
_DEAD = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
_KILLED_WITHIN = timedelta(seconds=5)


@dataclass(frozen=True, kw_only=True)
class ProcessId:
    """A process beyond doubt.

    Attributes:
        pid: Its number.
        created: When it was created, in seconds since 1970, as the system tells.
    """

    pid: int
    created: float


def identify(pid: int) -> ProcessId | None:
    """Return who has this pid now; None if nobody has."""
    try:
        return ProcessId(pid=pid, created=psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def is_alive(process: ProcessId) -> bool:
    """Tell whether this very process runs: not another one with its pid, and not its zombie."""
    found = find(process)
    return found is not None and _runs(found)


def find(process: ProcessId) -> psutil.Process | None:
    """Return this very process, running or zombie; None if it is gone or its pid is somebody else's."""
    try:
        found = psutil.Process(process.pid)
        same = abs(found.create_time() - process.created) <= _SAME_TIME_S
    except psutil.Error:
        return None
    return found if same else None


def child_runs(pid: int) -> bool:
    """Tell whether a child of this process runs; it must not have been reaped, so that its pid is its own.

    By the pid alone: the time of creation that the system tells moves when its clock is set.
    """
    try:
        return psutil.Process(pid).status() not in _DEAD
    except psutil.NoSuchProcess:
        return False


def signal_child(pid: int, number: signal.Signals) -> None:
    """Send a signal to a child of this process that has not been reaped; nothing happens if it is dead."""
    # Not `Popen.send_signal`: it reaps a child that has died, and then its pid proves nothing about its session.
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def session_of(leader_pid: int) -> list[psutil.Process]:
    """Return the running members of the session that this process leads, itself among them.

    It is exact as long as the leader runs or has not been reaped: nobody else can have its number until then.
    """
    return list(_running(pid for pid in psutil.pids() if _session(pid) == leader_pid))


def descendants_of(pid: int) -> list[psutil.Process]:
    """Return the running descendants of a process that runs, in whatever session (PostgreSQL has many).

    None of a process that is dead: its children have become the system's.
    """
    try:
        return [each for each in psutil.Process(pid).children(recursive=True) if _runs(each)]
    except psutil.NoSuchProcess:
        return []


def marked(run: str) -> list[psutil.Process]:
    """Return the running processes whose environment says that they belong to a run."""
    return [each for each in _running(psutil.pids()) if run in _marks(each)]


def working_in(folder: Path, *, program: Path) -> list[psutil.Process]:
    """Return the running processes of a program whose working folder this is."""
    wanted = (str(folder.resolve()), str(program.resolve()))
    return [each for each in _running(psutil.pids()) if _place(each) == wanted]


def mark_for(run: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that marks a child as this run's, within the runs that this process belongs to itself."""
    outer = environ.get(MARK, "")
    return {MARK: f"{outer}:{run}" if outer else run}


def end(processes: Iterable[psutil.Process], *, term_within: timedelta) -> list[psutil.Process]:
    """End processes: SIGTERM, and SIGKILL for those that still run after the bound; wait until they are gone.

    Returns:
        Those that could not be ended (another user's, or stuck in the kernel for seconds).
    """
    left = list(processes)
    for number, within in ((signal.SIGTERM, term_within), (signal.SIGKILL, _KILLED_WITHIN)):
        if left and within > timedelta(0):
            for each in left:
                send(each, number)
            wake(left)
            left = wait_until_gone(left, within=within)
    return left


def send(process: psutil.Process, number: signal.Signals) -> None:
    """Send a signal to this very process; nothing happens if it is gone, or another user's."""
    with suppress(psutil.Error):
        process.send_signal(number)


def wake(processes: Iterable[psutil.Process]) -> None:
    """Let processes go on that are stopped (SIGSTOP): only then do they hear what they were asked."""
    for each in processes:
        with suppress(psutil.Error):
            if each.status() == psutil.STATUS_STOPPED:
                send(each, signal.SIGCONT)


def wait_until_gone(processes: Iterable[psutil.Process], *, within: timedelta) -> list[psutil.Process]:
    """Wait until none of the processes runs; return those that still do when the time is over."""
    deadline = time.monotonic() + within.total_seconds()
    left = [each for each in processes if _runs(each)]
    while left and time.monotonic() < deadline:
        time.sleep(_LOOK_EVERY_S)
        left = [each for each in left if _runs(each)]
    return left


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() not in _DEAD
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


def _running(pids: Iterable[int]) -> Iterator[psutil.Process]:
    # Not `process_iter`: it keeps a cache for the whole program, and hands out one object to all its callers.
    for pid in pids:
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            if _runs(process):
                yield process


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _place(process: psutil.Process) -> tuple[str, str] | None:
    try:
        return process.cwd(), process.exe().removesuffix(" (deleted)")
    except (psutil.Error, OSError):
        return None


def _marks(process: psutil.Process) -> list[str]:
    try:
        value: str = process.environ().get(MARK, "")
    except (psutil.Error, OSError):
        return []
    return value.split(":")

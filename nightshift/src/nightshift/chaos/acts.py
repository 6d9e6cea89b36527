"""What is done to processes: to a whole tree, or to one child of a pool."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import psutil  # type: ignore[import-untyped]


def kill_tree(pid: int) -> int:
    """End a process and all its descendants with SIGKILL, itself first; return how many there were."""
    return _send_tree(pid, signal.SIGKILL)


def stop_tree(pid: int) -> int:
    """Stop a process and all its descendants (SIGSTOP), itself first; return how many there were."""
    return _send_tree(pid, signal.SIGSTOP)


def wake_tree(pid: int) -> int:
    """Let a stopped process and all its descendants go on (SIGCONT); return how many there were."""
    return _send_tree(pid, signal.SIGCONT)


def ask_to_end(pid: int) -> None:
    """Ask one process to end in order (SIGTERM)."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def children_of(pid: int) -> tuple[int, ...]:
    """Return the pids of a process's own children that run, the lowest first."""
    try:
        return tuple(sorted(each.pid for each in psutil.Process(pid).children() if _runs(each)))
    except psutil.Error:
        return ()


def kill_one(pid: int) -> None:
    """End one process with SIGKILL, and nobody else."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _send_tree(pid: int, number: signal.Signals) -> int:
    # PostgreSQL's processes lead sessions of their own, so the tree is what holds them together.
    sent = 0
    with suppress(psutil.Error):
        root = psutil.Process(pid)
        for each in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):
                each.send_signal(number)
                sent += 1
    return sent


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False

"""What a supervised process is, and what is left of one that died."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from slackwater.errors import LocalServiceError

LAST_LINES = 20
"""How many lines of its log a report of a death carries, at most."""

_TAIL_BYTES = 64 * 1024
_SHOWN = 5

Ready = Callable[[], bool] | re.Pattern[str]
"""When a child is ready: a question asked again and again, or a pattern found in a line that it wrote."""


@dataclass(frozen=True, kw_only=True)
class Child:
    """A process to be started and watched.

    Attributes:
        name: Unique among the children that run; for people.
        argv: The program and its arguments; a bare name is looked up on the PATH.
        env: Variables added to this process's environment.
        log_path: File to which both its outputs are appended.
        stop_signal: What asks it to end.
        stop_within: How long it may take; then come SIGTERM and SIGKILL, to all its descendants.
        at_parents_death: What the kernel sends it when this process dies, also by kill -9 (Linux only).
        user: (uid, gid) to run as, where this process may choose; None runs it as this process's own.
        cwd: Folder to start in; None starts it in this process's own.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    log_path: Path
    stop_signal: signal.Signals = signal.SIGTERM
    stop_within: timedelta = timedelta(seconds=10)
    at_parents_death: signal.Signals = signal.SIGKILL
    user: tuple[int, int] | None = None
    cwd: Path | None = None

    def __post_init__(self) -> None:
        if not self.argv:
            raise LocalServiceError(f"child {self.name!r}: has no command line; give argv at least a program")
        if self.stop_within < timedelta(0):
            raise LocalServiceError(
                f"child {self.name!r}: stop_within is negative ({self.stop_within}); give 0 or more"
            )


@dataclass(frozen=True, kw_only=True)
class ChildDied:
    """A child ended that nobody had asked to.

    Attributes:
        name: The child's.
        pid: What it had.
        signal: What killed it, if a signal did.
        exit_code: What it ended with, if it ended by itself.
        log_path: Its log.
        last_lines: The end of its log, `LAST_LINES` at most.
    """

    name: str
    pid: int
    signal: signal.Signals | None
    exit_code: int | None
    log_path: Path
    last_lines: tuple[str, ...]

    def __str__(self) -> str:
        return self.sentence

    @property
    def sentence(self) -> str:
        """Return how it ended in one line, without its log."""
        if self.signal is not None:
            return f"{self.name} (pid {self.pid}) was killed by {self.signal.name}"
        return f"{self.name} (pid {self.pid}) ended with exit code {self.exit_code}"


class ChildNotReady(LocalServiceError):
    """A child ended before it was ready, or did not become ready in time.

    Attributes:
        died: How it ended; None if it ran on (and was stopped).
        last_lines: The end of its log.
    """

    def __init__(self, message: str, *, died: ChildDied | None, last_lines: tuple[str, ...]) -> None:
        super().__init__(message)
        self.died = died
        self.last_lines = last_lines

    @classmethod
    def ended(cls, died: ChildDied) -> ChildNotReady:
        """Return the error for a child that ended too early."""
        said = _said(died.last_lines)
        return cls(
            f"{died.sentence} before it was ready{said}; see {died.log_path}", died=died, last_lines=died.last_lines
        )

    @classmethod
    def late(cls, child: Child, within: timedelta) -> ChildNotReady:
        """Return the error for a child that took too long."""
        lines = last_lines(child.log_path)
        message = f"{child.name} was not ready within {within.total_seconds():g} s and was stopped{_said(lines)}"
        return cls(f"{message}; see {child.log_path}", died=None, last_lines=lines)


def death_of(child: Child, *, pid: int, return_code: int) -> ChildDied:
    """Return the report of a child's death from what `wait` said of it (negative: a signal)."""
    return ChildDied(
        name=child.name,
        pid=pid,
        signal=signal.Signals(-return_code) if return_code < 0 else None,
        exit_code=return_code if return_code >= 0 else None,
        log_path=child.log_path,
        last_lines=last_lines(child.log_path),
    )


def last_lines(path: Path, count: int = LAST_LINES) -> tuple[str, ...]:
    """Return a file's last lines, `count` at most, from its last 64 KiB; none where there is no file."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - _TAIL_BYTES))
            tail = log.read()
    except OSError:
        return ()
    return tuple(tail.decode(errors="replace").splitlines()[-count:])


def _said(lines: tuple[str, ...]) -> str:
    worth = [line.strip() for line in lines if line.strip()][-_SHOWN:]
    return f" (it said: {' | '.join(worth)})" if worth else ""

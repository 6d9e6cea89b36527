"""One folder per run: its state, logs and sockets, a lock that says who holds it, and the cleaning after a killed run.

FOLDER/lock             held by flock for as long as the run lives; says who holds it
FOLDER/processes.json   the processes of the run
FOLDER/outside.json     folders elsewhere that belong to the run (a socket's path must be short)
FOLDER/logs/            one file a process
FOLDER/data/            what the servers keep
FOLDER/sockets/         UNIX sockets, where their paths are short enough
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from slackwater.adapters.embedded.outside import OutsideFolder, belongs_to, read_outside, write_outside
from slackwater.adapters.embedded.process_record import end_leftovers, read_record
from slackwater.adapters.embedded.processes import identify
from slackwater.errors import LocalServiceError

_HOLDER_WRITES_WITHIN_S = 1.0
_LOOK_EVERY_S = 0.02


class Data(StrEnum):
    """What becomes of a run's data and logs: kept for the next run in its folder, or removed before it begins."""

    KEEP = "keep"
    DISCARD = "discard"


class RunFolderInUse(LocalServiceError):
    """Another run holds the folder.

    Attributes:
        folder: The folder.
        pid: Who holds it; None if its holder could not be read.
        since: From when on, aware; None likewise.
    """

    def __init__(self, folder: Path, *, pid: int | None, since: datetime | None) -> None:
        who = "" if pid is None or since is None else f" (pid {pid}, since {since.astimezone():%H:%M:%S})"
        super().__init__(f"another run{who} uses {folder}; wait for it to end, or pass another folder")
        self.folder = folder
        self.pid = pid
        self.since = since


class RunFolder:
    """A folder that one run at a time holds; a context manager that gives it back.

    The lock ends with this process however it ends (flock, close-on-exec: children do not carry it on).

    Attributes:
        path: The folder, absolute.
        logs: Folder for logs.
        data: Folder for what servers keep.
        sockets: Folder for UNIX sockets.
        is_new: True if it held no data when it was taken.
        cleaned: Lines about what a killed run had left and was cleaned; none if no run was killed.
    """

    def __init__(self, path: Path, *, now: datetime | None = None, data: Data = Data.KEEP) -> None:
        """Take the folder, made if it is not there, and clean what a killed run left in it.

        Args:
            path: The folder.
            now: The time now, aware, for others who find the folder taken; None asks the machine.
            data: What becomes of the data and logs of the run before.

        Raises:
            RunFolderInUse: Another run holds it.
            LocalServiceError: It cannot be made or written.
        """
        self.path = path.resolve()
        self.logs, self.data, self.sockets = (self.path / name for name in ("logs", "data", "sockets"))
        self._policy = data
        with ExitStack() as undo, _told(self.path):
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = undo.enter_context((self.path / "lock").open("a+"))
            _take(self._lock, self.path, now or datetime.now(UTC))
            self.cleaned = self._clean()
            holds = [each for each in read_outside(self._outside) if each.holds_data]
            self.is_new = not holds and not (self.data.is_dir() and any(self.data.iterdir()))
            for each in (self.logs, self.data, self.sockets):
                each.mkdir(mode=0o700, exist_ok=True)
            undo.pop_all()

    @property
    def discards_data(self) -> bool:
        """Tell whether its data are removed when the run ends."""
        return self._policy is Data.DISCARD

    def discard_data(self) -> None:
        """Have its data removed when the run ends, as of a run that never came up."""
        self._policy = Data.DISCARD

    @property
    def record(self) -> Path:
        """Return the file for the record of the run's processes."""
        return self.path / "processes.json"

    def log(self, name: str) -> Path:
        """Return the file for a process's output."""
        return self.logs / f"{name}.log"

    def remember(self, folder: OutsideFolder) -> None:
        """Note a folder elsewhere that belongs to this run, to be removed with its like in here."""
        known = [each for each in read_outside(self._outside) if each.path != folder.path]
        write_outside(self._outside, [*known, folder])

    def knows(self, folder: Path) -> bool:
        """Tell whether a folder elsewhere is noted as this run folder's."""
        return any(each.path == folder for each in read_outside(self._outside))

    def close(self) -> None:
        """Remove the sockets and the record (and the data, if they are to be discarded), and give the folder back."""
        self.record.unlink(missing_ok=True)
        self._remove(data=self.discards_data)
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _outside(self) -> Path:
        return self.path / "outside.json"

    def _clean(self) -> tuple[str, ...]:
        """Clean what was left, and say so where the run before was killed (a run that ends takes its record along)."""
        killed, record = self.record.exists(), read_record(self.record)
        ended = end_leftovers(record) if record is not None else ()
        discard = self.discards_data
        self._remove(data=discard)
        if discard:
            shutil.rmtree(self.logs, ignore_errors=True)
        self.record.unlink(missing_ok=True)
        if not killed:
            return ()
        what = f"ended {', '.join(ended)}" if ended else "no process of it was left"
        return (f"cleaned up after a killed run in {self.path}: {what}; removed its sockets{' and data' * discard}",)

    def _remove(self, *, data: bool) -> None:
        shutil.rmtree(self.sockets, ignore_errors=True)
        if data:
            shutil.rmtree(self.data, ignore_errors=True)
        outside = read_outside(self._outside)
        kept = [each for each in outside if each.holds_data and not data]
        for each in outside:
            if each not in kept and belongs_to(each.path, self.path):
                shutil.rmtree(each.path, ignore_errors=True)
        write_outside(self._outside, kept)


def _take(lock: IO[str], folder: Path, now: datetime) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _in_use(folder) from None
    lock.truncate(0)
    lock.write(json.dumps({"pid": os.getpid(), "since": now.isoformat()}))
    lock.flush()


def _in_use(folder: Path) -> RunFolderInUse:
    # The holder may not have written to it yet: it is empty then, or tells of a run that was killed.
    deadline = time.monotonic() + _HOLDER_WRITES_WITHIN_S
    while time.monotonic() < deadline:
        with suppress(ValueError, KeyError):
            content = json.loads((folder / "lock").read_text())
            if identify(content["pid"]) is not None:
                return RunFolderInUse(folder, pid=content["pid"], since=datetime.fromisoformat(content["since"]))
        time.sleep(_LOOK_EVERY_S)
    return RunFolderInUse(folder, pid=None, since=None)


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    """Turn what the system says about the folder into one line."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise LocalServiceError(f"run folder {folder}: {reason}; pass another folder") from error

"""A note that any process of a night can leave, though its disk is full: its room is taken beforehand.

A worker whose journal cannot be written must not go on as if nothing were, and cannot tell anybody: its log is on the
same disk. It overwrites this note in place, which takes no new room; the night looks at it, and ends.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

NAME = "alarm.note"
_SIZE = 1024
_BLANK = b" "
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What the system says when there is no room: on the disk, for this user, or for this file."""


@dataclass(frozen=True)
class AlarmNote:
    """The note in a folder; empty until somebody leaves a line."""

    folder: Path

    def prepare(self) -> None:
        """Make it, with all the room that it will ever take; one that is there is emptied.

        Raises:
            OSError: There is no room even now.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._path.write_bytes(_BLANK * _SIZE)

    def leave(self, line: str) -> None:
        """Leave a line, if the note was prepared; the last one stays. Never raises: there is nobody to be told."""
        text = line.encode()[:_SIZE].ljust(_SIZE, _BLANK)
        with suppress(OSError):
            descriptor = os.open(self._path, os.O_WRONLY)
            try:
                os.pwrite(descriptor, text, 0)
            finally:
                os.close(descriptor)

    def read(self) -> str | None:
        """Return the line that was left; None where there is none."""
        with suppress(OSError):
            return self._path.read_bytes().decode(errors="replace").strip() or None
        return None

    @property
    def _path(self) -> Path:
        return self.folder / NAME


def no_room(folder: Path) -> str:
    """Return the line of a night whose disk is full."""
    return f"no space left on the disk of {folder}; the night is stopped, make room or pass another --folder"


def is_full(folder: Path, *, spare_bytes: int = 64 * 1024) -> bool:
    """Tell whether a folder's disk has next to no room; False where it cannot be asked."""
    with suppress(OSError):
        told = os.statvfs(folder)
        return told.f_bavail * told.f_frsize < spare_bytes
    return False

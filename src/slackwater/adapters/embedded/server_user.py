"""Whom a server runs as when this process is root, and where that user finds its files.

PostgreSQL refuses to run as root. The user it gets instead can enter neither root's home nor a run's own folder, so its
programs are copied, once, to a folder of the system that it can read, and its data live there too. The modes of folders
that are there already are never changed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pwd
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from slackwater.adapters.embedded.outside import OutsideFolder, mark_owner, owner_of
from slackwater.adapters.embedded.run_folder import RunFolder
from slackwater.errors import LocalServiceError

_PREFERRED = ("nobody", "postgres", "daemon")
_NO_EXEC = getattr(os, "ST_NOEXEC", 0)


@dataclass(frozen=True, kw_only=True)
class ServerUser:
    """An unprivileged user that is there already."""

    name: str
    uid: int
    gid: int

    @property
    def ids(self) -> tuple[int, int]:
        """Return its (uid, gid)."""
        return self.uid, self.gid


def choose_user(known: Iterable[tuple[str, int, int]]) -> ServerUser | None:
    """Decide whom a server of root's runs as: `nobody`, or the next best that is not root; None if there is nobody.

    Args:
        known: The system's users as (name, uid, gid).
    """
    users = [ServerUser(name=name, uid=uid, gid=gid) for name, uid, gid in known if uid != 0]
    users.sort(key=lambda user: _PREFERRED.index(user.name) if user.name in _PREFERRED else len(_PREFERRED))
    return users[0] if users else None


def server_user() -> ServerUser | None:
    """Return whom a server is to run as; None where this process is not root, and the server runs as it does.

    Raises:
        LocalServiceError: This is root, and the system knows no other user.
    """
    if os.geteuid() != 0:
        return None
    user = choose_user((each.pw_name, each.pw_uid, each.pw_gid) for each in pwd.getpwall())
    if user is None:
        raise LocalServiceError(
            "PostgreSQL refuses to run as root, and this system has no other user; add one, or run as a user"
        )
    return user


def shared_base(candidates: Iterable[Path] | None = None) -> Path:
    """Return root's folder for what another user must be able to read; made if it is not there.

    Args:
        candidates: Folders to try in order; None tries the system's place for state, then those for temporary files.

    Raises:
        LocalServiceError: None of them can be made, entered by others, and run programs from.
    """
    tried = list(candidates) if candidates is not None else _usual_places()
    for folder in tried:
        if _usable(folder):
            return folder
    names = ", ".join(str(each) for each in tried)
    raise LocalServiceError(
        f"PostgreSQL's programs must be where an unprivileged user can run them, and none of {names} can be that; "
        "make one of them writable, or give the address of a PostgreSQL"
    )


@contextmanager
def holding(base: Path) -> Iterator[None]:
    """Keep other processes from changing a base folder meanwhile."""
    with (base / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def shared_place(run_folder: RunFolder, *, base: Path) -> Path:
    """Return the folder in a base that belongs to a run folder, made if it is not there, and noted in the run folder.

    Those of runs whose data were to be discarded and whose run folders are gone are removed.
    """
    kind = "scratch" if run_folder.discards_data else "data"
    place = base / kind / hashlib.sha256(str(run_folder.path).encode()).hexdigest()[:12]
    with holding(base):
        _sweep(base / "scratch")
        if place.exists() and not run_folder.knows(place):
            shutil.rmtree(place)  # of a run folder at the same path that somebody removed, and its data with it
        for each in (place.parent, place):
            _make(each)
        mark_owner(place, run_folder.path)
        run_folder.remember(OutsideFolder(path=place, holds_data=True))
    return place


def _sweep(scratch: Path) -> None:
    for place in scratch.iterdir() if scratch.is_dir() else ():
        owner = owner_of(place)
        if owner is not None and not (owner / "lock").exists():
            shutil.rmtree(place, ignore_errors=True)


def _make(folder: Path) -> None:
    """Make a folder that others can pass through, whatever the umask; one that is there is left as it is."""
    with suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(0o711)


def _usual_places() -> list[Path]:
    own = f"slackwater-{os.geteuid()}"
    return [Path("/var/lib/slackwater"), Path("/var/tmp") / own, Path(tempfile.gettempdir()) / own]  # noqa: S108


def _usable(folder: Path) -> bool:
    try:
        _make(folder)
        found = folder.lstat()
        others_enter = all(each.stat().st_mode & stat.S_IXOTH for each in folder.parents)
        runs_programs = not os.statvfs(folder).f_flag & _NO_EXEC
    except OSError:
        return False
    # Where everybody may write, somebody else may have made it before us.
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
    return ours and bool(found.st_mode & stat.S_IXOTH) and others_enter and runs_programs and os.access(folder, os.W_OK)

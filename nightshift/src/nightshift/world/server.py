"""The world's process: a socket on loopback, the books, one uvicorn server, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import uvicorn
from fastapi import Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from nightshift.tokens import Registration
from nightshift.world.app import create_app
from nightshift.world.bookkeeper import Bookkeeper
from nightshift.world.desk import Desk
from nightshift.world.script import WorldRules

LOOPBACK = "127.0.0.1"
_LISTEN_BACKLOG = 1024
_GRACE_S = 2


class SocketError(Exception):
    """The listening socket cannot be had; the sentence says why, and the remedy."""


def listen(*, port: int | None, fd: int | None) -> socket.socket:
    """Open the listening socket.

    Args:
        port: Port on loopback, 0 for a free one; None to take over `fd`.
        fd: File descriptor of a bound TCP socket that the parent process opened.

    Returns:
        The socket, listening: from here on callers queue, none is refused.

    Raises:
        SocketError: The port is taken, or the descriptor is no TCP socket.
    """
    try:
        listener = _bound_socket(port or 0) if fd is None else socket.socket(fileno=fd)
        listener.listen(_LISTEN_BACKLOG)
    except OSError as error:
        where = f"file descriptor {fd}" if fd is not None else f"port {port} on {LOOPBACK}"
        remedy = "pass a bound TCP socket" if fd is not None else "choose another --port, or 0 for a free one"
        raise SocketError(f"cannot listen on {where}: {os.strerror(error.errno or 0)}; {remedy}") from error
    return listener


def _bound_socket(port: int) -> socket.socket:
    # asyncio sets TCP_NODELAY only where the protocol is named; without it each answer takes 40 ms more.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
    except OSError:
        listener.close()
        raise
    return listener


def serve(rules: WorldRules, books_path: Path, *, listener: socket.socket, registration: Registration) -> None:
    """Run the world until SIGTERM or SIGINT; on stdout, one line of JSON tells when it is really serving.

    Args:
        rules: What decides the answers.
        books_path: SQLite file of the books.
        listener: Listening socket.
        registration: Of the one application that may call.

    Raises:
        BooksError: The books cannot be written, at the start or later.
    """
    logging.basicConfig(level=logging.WARNING, format="world: %(message)s")
    with contextlib.closing(Bookkeeper(books_path, seed=rules.seed)) as books:
        asyncio.run(_serve(Desk(rules, books, registration=registration), listener))
        failure = books.failure
    if failure is not None:
        raise failure


async def _serve(desk: Desk, listener: socket.socket) -> None:
    config = uvicorn.Config(
        create_app(desk),
        http=H11Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,
        timeout_keep_alive=75,  # longer than any client of ours keeps an idle connection
        timeout_graceful_shutdown=_GRACE_S,
    )
    server = _Server(config, desk)
    desk.books.on_failure = server.end
    desk.transport_of = server.transport_of
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.end)
    try:
        await server.serve(sockets=[listener])
    finally:
        desk.books.on_failure = lambda: None


class _Server(uvicorn.Server):
    """uvicorn's server, which tells when it serves and ends with exit code 0 on a signal."""

    def __init__(self, config: uvicorn.Config, desk: Desk) -> None:
        super().__init__(config)
        self._desk = desk
        self._loop = asyncio.get_running_loop()

    def end(self) -> None:
        """Stop accepting, cut off the calls that wait, and return from `serve`; callable from any thread."""
        self.should_exit = True
        self._loop.call_soon_threadsafe(self._desk.close)

    def transport_of(self, request: Request) -> asyncio.Transport | None:
        """Return the connection that a request came by; None where it is closed."""
        client = request.scope.get("client")
        for connection in self.server_state.connections:
            if isinstance(connection, H11Protocol) and connection.client == client:
                return connection.transport
        return None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to us: uvicorn would raise them again after an orderly end."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start serving, then say so."""
        await super().startup(sockets=sockets)
        for listener in sockets or []:
            host, port = listener.getsockname()[:2]
            sys.stdout.write(json.dumps({"ready": True, "url": f"http://{host}:{port}"}) + "\n")
            sys.stdout.flush()

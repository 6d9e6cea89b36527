"""A RabbitMQ node of the tests' own, from the installed programs: for faults that must not hit anybody else's."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from uuid import uuid4

from slackwater.adapters.embedded.parent_death import launch_line

_HOST = "127.0.0.1"
_PROGRAMS = (
    "/usr/lib/rabbitmq/bin/rabbitmq-server",
    "/usr/local/sbin/rabbitmq-server",
    "/opt/rabbitmq/sbin/rabbitmq-server",
)
_READY_WITHIN_S = 90.0
_STOPPED_WITHIN_S = 30.0
_EPMD_WITHIN_S = 10.0
_GUEST = "Basic " + base64.b64encode(b"guest:guest").decode()


def missing() -> str | None:
    """Return why no node can be started here; None if one can."""
    if _program() is None:
        return f"no rabbitmq-server is installed (looked at {', '.join(_PROGRAMS)})"
    if shutil.which("epmd") is None:
        return "no epmd (Erlang's port mapper) is on the path"
    return None


class RabbitMQNode:
    """One node, its port mapper and its files; on loopback, with the management interface, user guest.

    It keeps its data over `down`, `kill` and `up`, and its ports too. It dies with this process.
    """

    def __init__(self, folder: Path, *, options: Mapping[str, str] | None = None) -> None:
        """Prepare; nothing is started yet.

        Args:
            folder: For data, logs, cookie and configuration.
            options: More lines of `rabbitmq.conf`, such as `consumer_timeout`.
        """
        self.folder = folder
        self.port, self._distribution, self._management, self._mapper_port = _free_ports(4)
        self._options = dict(options or {})
        self._name = f"sw{uuid4().hex[:8]}@localhost"
        self._node: subprocess.Popen[bytes] | None = None
        self._mapper: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return its address, of the default virtual host."""
        return f"amqp://guest:guest@{_HOST}:{self.port}//"

    @property
    def management_url(self) -> str:
        """Return the address of its management interface, credentials included."""
        return f"http://guest:guest@{_HOST}:{self._management}"

    @property
    def pid(self) -> int:
        """Return the pid of the running node."""
        assert self._node is not None, "the node does not run"
        return self._node.pid

    def virtual_host(self) -> str:
        """Make a virtual host that nobody has used, and return its address."""
        name = f"v{uuid4().hex[:12]}"
        self.ask("PUT", f"vhosts/{name}")
        self.ask("PUT", f"permissions/{name}/guest", {"configure": ".*", "write": ".*", "read": ".*"})
        return f"amqp://guest:guest@{_HOST}:{self.port}/{name}"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Put a question to the management interface; return its answer, None where it is empty."""
        headers = {"Authorization": _GUEST, "Content-Type": "application/json"}
        data = None if body is None and method == "GET" else json.dumps(body or {}).encode()
        where = f"http://{_HOST}:{self._management}/api/{quote(path, safe='/%?=&')}"
        request = urllib.request.Request(where, data=data, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            said = answer.read()
        return json.loads(said) if said else None

    def up(self) -> None:
        """Start it, and wait until it takes connections and answers."""
        self._start_mapper()
        self._configure()
        program = _program()
        assert program is not None, missing()
        with (self.folder / "out").open("ab") as log:
            line = launch_line([program], at_parents_death=signal.SIGKILL)
            self._node = subprocess.Popen(
                line, env=self._environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        until = time.monotonic() + _READY_WITHIN_S
        while not self._answers():
            ended = self._node.poll()
            assert ended is None, f"RabbitMQ ended with {ended}: {self._said()}"
            if time.monotonic() > until:
                self.close()
                raise AssertionError(f"RabbitMQ was not ready within {_READY_WITHIN_S} s: {self._said()}")
            time.sleep(0.1)  # a poll with a deadline: the node has no other way to say that it is ready

    def down(self) -> None:
        """Stop it in an orderly way."""
        self._end(signal.SIGTERM, within_s=_STOPPED_WITHIN_S)

    def kill(self) -> None:
        """Kill it (SIGKILL); what was confirmed is there at the next `up`.

        Quorum queues younger than three minutes would not be: RabbitMQ 3.10 writes their names to disk that late (after
        a kill it then says "leader not known" for ever). So it is made to write them first.
        """
        self.control("eval", "[dets:sync(Table) || Table <- dets:all()].")
        self._end(signal.SIGKILL, within_s=_STOPPED_WITHIN_S)

    def control(self, *words: str) -> str:
        """Run `rabbitmqctl` on it; return what it said."""
        program = Path(_program() or "").with_name("rabbitmqctl")
        done = subprocess.run(
            [str(program), "-q", *words],
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=_STOPPED_WITHIN_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def close(self) -> None:
        """End it and its port mapper for good."""
        self._end(signal.SIGKILL, within_s=_STOPPED_WITHIN_S)
        if self._mapper is not None:
            self._mapper.kill()
            self._mapper.wait(_EPMD_WITHIN_S)
            self._mapper = None

    def _end(self, number: signal.Signals, *, within_s: float) -> None:
        node, self._node = self._node, None
        if node is None:
            return
        node.send_signal(number)
        try:
            node.wait(within_s)
        except subprocess.TimeoutExpired:
            node.kill()
            node.wait(within_s)

    def _start_mapper(self) -> None:
        # One of our own: the system's would keep the node's name, and one that the node starts would outlive it.
        if self._mapper is not None and self._mapper.poll() is None:
            return
        epmd = shutil.which("epmd") or "epmd"
        line = launch_line([epmd, "-address", _HOST, "-port", str(self._mapper_port)], at_parents_death=signal.SIGKILL)
        self._mapper = subprocess.Popen(line, stdin=subprocess.DEVNULL, start_new_session=True)
        until = time.monotonic() + _EPMD_WITHIN_S
        while not _listens(self._mapper_port):
            assert time.monotonic() < until, "epmd does not listen"
            time.sleep(0.02)

    def _configure(self) -> None:
        for name in ("home", "mnesia", "log"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "enabled_plugins").write_text("[rabbitmq_management].\n")
        options = {
            "listeners.tcp.own": f"{_HOST}:{self.port}",
            "management.tcp.ip": _HOST,
            "management.tcp.port": str(self._management),
            "collect_statistics_interval": "1000",
            "disk_free_limit.absolute": "50MB",
            **self._options,
        }
        (self.folder / "rabbitmq.conf").write_text("".join(f"{name} = {value}\n" for name, value in options.items()))

    def _environment(self) -> dict[str, str]:
        own = {
            "HOME": str(self.folder / "home"),
            "RABBITMQ_NODENAME": self._name,
            "RABBITMQ_DIST_PORT": str(self._distribution),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "no-environment-file"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
            "ERL_EPMD_PORT": str(self._mapper_port),
            "ERL_EPMD_ADDRESS": _HOST,
            "ERL_FLAGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            # The script then becomes the node instead of staying above it: the pid that we know is the node's.
            "RUNNING_UNDER_SYSTEMD": "true",
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("RABBITMQ_", "ERL_"))}
        return {**kept, **own}

    def _answers(self) -> bool:
        if not _listens(self.port):
            return False
        try:
            return bool(self.ask("GET", "aliveness-test/%2F")["status"] == "ok")
        except (HTTPError, OSError, ValueError, TypeError):
            return False

    def _said(self) -> str:
        return "\n".join((self.folder / "out").read_text(errors="replace").splitlines()[-20:])


def _program() -> str | None:
    """Return the server's own script: the one on Debian's path changes the user and the folders."""
    return next((path for path in _PROGRAMS if os.access(path, os.X_OK)), None)


def _free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on now, each another."""
    listeners = [socket.create_server((_HOST, 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in listeners]
    for each in listeners:
        each.close()
    return ports


def _listens(port: int) -> bool:
    try:
        socket.create_connection((_HOST, port), timeout=1).close()
    except OSError:
        return False
    return True

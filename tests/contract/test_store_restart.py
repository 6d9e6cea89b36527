from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from slackwater.adapters.postgres import PostgresStore
from slackwater.core.reading import LaneReading
from slackwater.errors import StoreUnavailable
from slackwater.local import Data, PostgreSQL, RunFolder, Supervisor

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class PrivateServer:
    """A PostgreSQL that a test may stop and kill."""

    def __init__(self, run: RunFolder, supervisor: Supervisor) -> None:
        self._server, self._supervisor = PostgreSQL(run), supervisor

    def start(self) -> str:
        return self._server.start(self._supervisor)

    def stop(self) -> None:
        self._supervisor.stop(self._server.name)

    def kill(self) -> None:
        os.kill(self._supervisor.pids[self._server.name], signal.SIGKILL)
        deadline = time.monotonic() + 20
        while self._supervisor.poll() is None:
            assert time.monotonic() < deadline, "the killed server is still there"


@pytest.fixture(scope="module")
def private_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateServer]:
    folder: Path = tmp_path_factory.mktemp("private")
    with RunFolder(folder, now=datetime.now(UTC), data=Data.DISCARD) as run, Supervisor(run) as supervisor:
        server = PrivateServer(run, supervisor)
        yield server


@pytest.mark.parametrize("end", [PrivateServer.stop, PrivateServer.kill], ids=["stopped", "killed"])
def test_what_was_kept_is_there_and_the_next_call_works_once_the_server_is_back(
    private_server: PrivateServer, end: Callable[[PrivateServer], None]
) -> None:
    store = PostgresStore(private_server.start())
    store.migrate()
    store.readings.prune(NOW + 9 * SECOND)
    store.readings.append([LaneReading(at=NOW, lane="network", ready=7)])

    end(private_server)
    for act in (store.check, store.occurrences.open, lambda: store.readings.append([LaneReading(at=NOW, lane="x")])):
        with pytest.raises(StoreUnavailable, match="does not answer"):
            act()
    private_server.start()

    store.readings.append([LaneReading(at=NOW + SECOND, lane="network")])
    assert [one.ready for one in store.readings.between(NOW, NOW + 9 * SECOND)] == [7, None]
    store.close()
    private_server.stop()

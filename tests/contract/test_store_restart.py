from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from tests.contract.private_server import PrivateServer

from slackwater.adapters.postgres import PostgresStore
from slackwater.core.reading import LaneReading
from slackwater.errors import StoreUnavailable

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


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

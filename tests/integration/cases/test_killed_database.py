"""All processes of the database are killed right after a key was committed."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from uuid import uuid4

import psycopg
import pytest
from tests.contract.private_server import PrivateServer
from tests.integration.cases.application import effects
from tests.integration.cases.gateway import Gateway
from tests.integration.cases.ward import Ward, ward_at
from tests.integration.celery.application import Place
from tests.integration.celery.spine import eventually

from slackwater.core.admission import Ask, KeyRule
from slackwater.core.job import JobState


@pytest.fixture
def hasty_ward(place: Place, database_url: str) -> Iterator[Ward]:
    """A ward whose database commits without waiting for the disk, where nobody asks for it."""
    with psycopg.connect(database_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("ALTER DATABASE slackwater SET synchronous_commit TO off")
    with ward_at(replace(place, store_url=database_url)) as ward:
        yield ward


def test_a_key_survives_and_there_is_one_filing(
    hasty_ward: Ward, private_database: PrivateServer, gateway: Gateway
) -> None:
    ward = hasty_ward
    gateway.hangs.set()
    with ExitStack() as first:
        one = first.enter_context(ward.worker("one", CASES_PEER=gateway.url))
        job = ward.tasks["heavy.file"].delay("run").id
        # The gateway has it, so the key was committed before.
        eventually(lambda: gateway.filings("run"))
        private_database.kill_all()
        one.kill()
    private_database.start()
    key = ward.sw.store.runs.key("file-heavy:run")
    assert key is not None
    assert (key.job, key.state) == (job, JobState.RUNNING)
    with ward.worker("two", CASES_PEER=gateway.url):
        ward.done(job)
        again = ward.tasks["heavy.file"].delay("run").id
        ward.done(again)
        assert gateway.filings("run") == [ward.meta(job)["result"]] == [ward.meta(again)["result"]]
        assert not ward.runs(again)


@pytest.mark.parametrize("broker_url", ["valkey"], indirect=True)
def test_control_a_commit_that_does_not_wait_for_the_disk_is_lost(
    hasty_ward: Ward, private_database: PrivateServer
) -> None:
    """The database waits for the disk where it is asked to: for the key it is, for the row it is not."""
    store = hasty_ward.sw.store
    asked = Ask(job="a", tries=0, task="file", boot=uuid4(), redelivered=False, key=KeyRule(name="kept"))
    with ExitStack() as open_until_killed:
        connection = open_until_killed.enter_context(effects(hasty_ward.place))
        connection.autocommit = True
        private_database.freeze_log_writer()
        store.runs.begin([asked])
        connection.execute("INSERT INTO effects VALUES ('lost', 1)")
        assert hasty_ward.committed() == [("lost", 1)]
        private_database.kill_all()
    private_database.start()
    assert store.runs.key("kept") is not None
    assert hasty_ward.committed() == []

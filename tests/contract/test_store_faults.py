"""PostgreSQL alone: the server is frozen, or killed with all its processes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
import pytest
from tests.contract.private_server import PrivateServer

from slackwater.adapters.postgres import PostgresStore
from slackwater.core.admission import Admit, Ask, KeyRule, LeaseRule, Resolve, Wait
from slackwater.core.dead_letter import DeadLetter
from slackwater.core.job import JobState
from slackwater.core.message import Held, Message
from slackwater.ports.delivery import Announcement, Finish
from slackwater.ports.recovery import LetterFilter

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
MINUTE, LIVES_FOR = timedelta(minutes=1), timedelta(seconds=1)
BOOT, OTHER = UUID(int=1), UUID(int=2)
ENDED = "SELECT expires_at < clock_timestamp() FROM slackwater.leases WHERE name = %s"


def ask(job: str, *, boot: UUID = BOOT, lease: str = "account:7", key: str | None = None) -> Ask:
    rule = LeaseRule(name=lease, lives_for=LIVES_FOR)
    keyed = None if key is None else KeyRule(name=key)
    return Ask(job=job, tries=0, task="sync", boot=boot, redelivered=False, lease=rule, key=keyed)


def message(job: str) -> Message:
    return Message(job=job, task="t", queue="q", headers={}, body=b"7", content_type="x", content_encoding="y")


@pytest.fixture
def url(private_server: PrivateServer) -> Iterator[str]:
    yield private_server.start()
    private_server.stop()


@pytest.fixture
def private_store(url: str) -> Iterator[PostgresStore]:
    """A store whose database commits without waiting for the disk, where nobody asks for it."""
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("ALTER DATABASE slackwater SET synchronous_commit TO off")
    store = PostgresStore(url)
    store.migrate()
    yield store
    store.close()


def lapsed_by_its_own_end(url: str, lease: str) -> bool:
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        row = connection.execute(ENDED, [lease]).fetchone()
    assert row is not None
    return bool(row[0])


def test_a_database_that_stood_still_for_three_times_to_live_takes_no_lease_from_its_holder(
    private_server: PrivateServer, private_store: PostgresStore, url: str
) -> None:
    runs = private_store.runs
    runs.renew(OTHER, [], lives_for=LIVES_FOR)
    (begun,) = runs.begin([ask("a")])
    assert isinstance(begun.admission, Admit)

    private_server.freeze()
    back_at = time.monotonic() + 3 * LIVES_FOR.total_seconds()
    while time.monotonic() < back_at:
        time.sleep(0.05)
    private_server.thaw()

    (refused,) = runs.begin([ask("b", boot=OTHER)])
    assert lapsed_by_its_own_end(url, "account:7")
    assert isinstance(refused.admission, Wait)
    runs.renew(BOOT, ["a"], lives_for=LIVES_FOR)
    held = runs.lease("account:7")
    assert held is not None
    assert (held.job, held.fence) == ("a", begun.fence)

    deadline = time.monotonic() + 60
    while runs.lease("account:7") is not None:
        assert time.monotonic() < deadline, "amnesty never ended"
        runs.renew(OTHER, [], lives_for=LIVES_FOR)


def test_a_server_that_was_started_anew_takes_no_lease_from_its_holder_either(
    private_server: PrivateServer, private_store: PostgresStore, url: str
) -> None:
    runs = private_store.runs
    runs.renew(OTHER, [], lives_for=LIVES_FOR)
    (begun,) = runs.begin([ask("restarted", lease="account:8")])
    assert isinstance(begun.admission, Admit)
    private_server.stop()
    private_server.start()
    deadline = time.monotonic() + 60
    while not lapsed_by_its_own_end(url, "account:8"):
        assert time.monotonic() < deadline, "it never lapsed"

    held = runs.lease("account:8")
    assert held is not None
    assert held.fence == begun.fence


@pytest.mark.parametrize("turn", range(3))
def test_a_key_that_was_committed_survives_the_death_of_all_processes(
    private_server: PrivateServer, private_store: PostgresStore, turn: int
) -> None:
    job, key = f"job-{turn}", f"filing-{turn}"
    (begun,) = private_store.runs.begin([ask(job, lease=key, key=key)])
    private_server.kill_all()
    assert isinstance(begun.admission, Admit)
    private_server.start()

    kept = private_store.runs.key(key)
    assert kept is not None
    assert (kept.job, kept.state) == (job, JobState.RUNNING)
    (again,) = private_store.runs.begin([replace(ask(f"{job}-again", lease=key, key=key), boot=OTHER)])
    assert isinstance(again.admission, Resolve)


def test_an_announcement_survives_the_death_of_all_processes(
    private_server: PrivateServer, private_store: PostgresStore
) -> None:
    mine = Announcement(job="announced", task="t", key=KeyRule(name="announced"))
    private_store.runs.announce([mine], at=NOW, stale_before=NOW)
    private_server.kill_all()
    private_server.start()

    assert private_store.runs.key("announced") is not None


def test_an_end_survives_the_death_of_all_processes(
    private_server: PrivateServer, private_store: PostgresStore
) -> None:
    one = Finish(job="ended", tries=0, state=JobState.DONE, ended_at=NOW)
    private_store.runs.finish([one])
    private_server.kill_all()
    private_server.start()

    assert private_store.runs.runs(["ended"])["ended"].state is JobState.DONE


def test_what_was_handed_back_survives_the_death_of_all_processes(
    private_server: PrivateServer, private_store: PostgresStore
) -> None:
    private_store.runs.hand_back([("back", 0)])
    private_server.kill_all()
    private_server.start()

    assert private_store.runs.runs(["back"])["back"].handed_back


def test_a_held_job_survives_the_death_of_all_processes(
    private_server: PrivateServer, private_store: PostgresStore
) -> None:
    one = Held(message=message("held"), lane="q", tries=0, not_before=NOW, reason="", held_at=NOW)
    private_store.holds.hold([one])
    private_server.kill_all()
    private_server.start()

    assert private_store.holds.find(["held"]) == {"held": one}


def test_a_dead_letter_survives_the_death_of_all_processes(
    private_server: PrivateServer, private_store: PostgresStore
) -> None:
    one = DeadLetter(
        job="dead", task="t", lane="q", state=JobState.DEAD, cause="poison", reason="", attempts=3, tries=1,
        buried_at=NOW, message=message("dead"),
    )  # fmt: skip
    private_store.dead_letters.bury([one], full_per_cause=9)
    private_server.kill_all()
    private_server.start()

    assert private_store.dead_letters.list(LetterFilter(), limit=9) == [one]

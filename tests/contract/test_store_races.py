"""PostgreSQL alone: many connections at once, and transactions that check a fence."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import Connection, Engine, create_engine, text

from slackwater.adapters.postgres import PostgresStore
from slackwater.adapters.postgres.fencing import check_fence
from slackwater.adapters.postgres.pipeline import Pipeline
from slackwater.adapters.postgres.under_way import Keeping
from slackwater.core.admission import Admit, Ask, KeyRule, LeaseRule, Wait, WhenTaken
from slackwater.core.job import JobState
from slackwater.core.message import Held, Message
from slackwater.core.under_way import Offer, Start
from slackwater.errors import ConfigurationError, StaleFence
from slackwater.ports.delivery import Announcement, Begun, Finish

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
BOOTS = [UUID(int=number) for number in range(1, 5)]
ROUNDS = 40
SCHEMA = "slackwater"


def ask(job: str, lease: str, *, boot: UUID = BOOTS[0], when_taken: WhenTaken = WhenTaken.WAIT) -> Ask:
    rule = LeaseRule(name=lease, when_taken=when_taken, lives_for=MINUTE)
    return Ask(job=job, tries=0, task="sync", boot=boot, redelivered=False, lease=rule)


def end(one: Ask, begun: Begun) -> Finish:
    assert one.lease is not None
    return Finish(job=one.job, tries=0, state=JobState.DONE, ended_at=NOW, lease=one.lease.name, fence=begun.fence)


def offer(one: Ask) -> Offer:
    assert one.lease is not None
    return Offer(job=one.job, tries=0, task="sync", lane="q", lease=one.lease.name)


def fence_of(store: PostgresStore, one: Ask) -> int:
    (begun,) = store.runs.begin([one])
    assert begun.fence is not None
    return begun.fence


@pytest.fixture
def theirs(migrated_url: str) -> Iterator[Engine]:
    """A customer's own engine on the same database."""
    engine = create_engine(migrated_url)
    yield engine
    engine.dispose()


@pytest.fixture
def connection(theirs: Engine, postgres_store: PostgresStore) -> Iterator[Connection]:
    with theirs.connect() as connection:
        yield connection


@pytest.fixture
def driver(migrated_url: str, postgres_store: PostgresStore) -> Iterator[psycopg.Connection]:
    with psycopg.connect(migrated_url.replace("+psycopg", "")) as connection:
        yield connection


def test_of_many_who_begin_with_the_same_lease_at_once_exactly_one_may(postgres_store: PostgresStore) -> None:
    start = Barrier(4)

    def begin(number: int) -> list[int | None]:
        fences = []
        for turn in range(ROUNDS):
            start.wait(timeout=60)
            (begun,) = postgres_store.runs.begin([ask(f"{turn}-{number}", f"lease-{turn}", boot=BOOTS[number])])
            assert isinstance(begun.admission, Admit | Wait)
            fences.append(begun.fence)
        return fences

    with ThreadPoolExecutor(4) as threads:
        fences = list(threads.map(begin, range(4)))

    assert [sum(one is not None for one in turn) for turn in zip(*fences, strict=True)] == [1] * ROUNDS


def test_of_many_who_begin_with_the_same_key_at_once_exactly_one_may(postgres_store: PostgresStore) -> None:
    start = Barrier(4)

    def begin(number: int) -> list[bool]:
        admitted = []
        for turn in range(ROUNDS):
            one = ask(f"{turn}-{number}", f"key:{turn}", boot=BOOTS[number])
            start.wait(timeout=60)
            (begun,) = postgres_store.runs.begin([replace(one, key=KeyRule(name=f"{turn}"))])
            admitted.append(isinstance(begun.admission, Admit))
        return admitted

    with ThreadPoolExecutor(4) as threads:
        admitted = list(threads.map(begin, range(4)))

    assert [sum(turn) for turn in zip(*admitted, strict=True)] == [1] * ROUNDS


def test_copies_of_one_released_job_that_come_at_once_start_once(postgres_store: PostgresStore) -> None:
    start = Barrier(4)

    def begin(number: int) -> list[bool]:
        admitted = []
        for turn in range(ROUNDS):
            one = Ask(job=f"{turn}", tries=0, task="t", boot=BOOTS[number], redelivered=False, released=True)
            start.wait(timeout=60)
            admitted.append(isinstance(postgres_store.runs.begin([one])[0].admission, Admit))
        return admitted

    with ThreadPoolExecutor(4) as threads:
        admitted = list(threads.map(begin, range(4)))

    assert [sum(turn) for turn in zip(*admitted, strict=True)] == [1] * ROUNDS


def test_batches_of_the_same_jobs_keys_and_leases_in_opposite_order_all_get_through(
    postgres_store: PostgresStore,
) -> None:
    start = Barrier(4)
    numbers = range(60)

    def work(who: int) -> None:
        order = list(numbers)[:: 1 if who % 2 else -1]
        for turn in range(8):
            asks = [
                replace(ask(f"{turn}-{one}", f"lease-{one}", boot=BOOTS[who]), key=KeyRule(name=f"{one}"))
                for one in order
            ]
            start.wait(timeout=60)
            begun = postgres_store.runs.begin(asks)
            ends = [end(one, its) for one, its in zip(asks, begun, strict=True) if its.fence is not None]
            postgres_store.runs.announce(
                [Announcement(job=one.job, task="t", key=one.key) for one in asks if one.key], at=NOW, stale_before=NOW
            )
            postgres_store.runs.renew(BOOTS[who], [one.job for one in asks], lives_for=MINUTE)
            postgres_store.runs.keep(BOOTS[who], [offer(one) for one in asks])
            postgres_store.runs.finish(ends)
            postgres_store.runs.prune(before=NOW + 999 * timedelta(days=1))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))

    assert all(postgres_store.runs.lease(f"lease-{one}") is None for one in numbers)


def test_two_who_claim_at_once_never_claim_the_same_job(postgres_store: PostgresStore) -> None:
    def held(number: int) -> Held:
        message = Message(
            job=f"{number}", task="t", queue="q", headers={}, body=b"", content_type="x", content_encoding="y"
        )
        waits_for = f"lease-{number}" if number % 2 else None
        return Held(message=message, lane="q", tries=0, not_before=NOW, waits_for=waits_for, reason="", held_at=NOW)

    postgres_store.holds.hold([held(number) for number in range(400)])
    start = Barrier(4)

    def claim(who: int) -> list[str]:
        found: list[str] = []
        start.wait(timeout=60)
        for _ in range(100):
            claimed = postgres_store.holds.claim({"q": 10}, boot=BOOTS[who], now=NOW, claimed_for=MINUTE)
            found.extend(one.job for one in claimed)
        return found

    with ThreadPoolExecutor(4) as threads:
        found = [job for jobs in threads.map(claim, range(4)) for job in jobs]

    assert len(found) == len(set(found)) == 400


def test_while_a_fence_is_checked_its_lease_is_not_waited_for_and_cannot_be_taken(
    postgres_store: PostgresStore, connection: Connection
) -> None:
    fence = fence_of(postgres_store, ask("a", "account:7"))
    postgres_store.runs.begin([ask("c", "account:8")])
    check_fence(connection, schema=SCHEMA, lease="account:7", fence=fence)

    taker = ask("b", "account:7", boot=BOOTS[1], when_taken=WhenTaken.REPLACE)
    (begun,) = postgres_store.runs.begin([taker])
    assert begun.admission == Wait(on="account:7", reason="lease account:7: its holder commits")
    postgres_store.runs.renew(BOOTS[0], ["a", "c"], lives_for=MINUTE)
    postgres_store.runs.lapse_all(BOOTS[0])
    assert postgres_store.runs.lease("account:7") is not None
    assert postgres_store.runs.lease("account:8") is None

    connection.commit()
    assert fence_of(postgres_store, taker) > fence
    with pytest.raises(StaleFence, match=f"lease account:7: fence {fence} is stale") as stale:
        check_fence(connection, schema=SCHEMA, lease="account:7", fence=fence)
    assert (stale.value.lease, stale.value.fence) == ("account:7", fence)


def test_a_key_is_not_taken_from_a_lapsed_holder_that_is_committing(
    postgres_store: PostgresStore, connection: Connection
) -> None:
    first = replace(ask("a", "one"), key=KeyRule(name="run:1"))
    fence = fence_of(postgres_store, first)
    connection.execute(text("UPDATE slackwater.leases SET expires_at = '-infinity', lives_for = '-1 s'"))
    connection.commit()
    check_fence(connection, schema=SCHEMA, lease="one", fence=fence)

    other = replace(ask("b", "two", boot=BOOTS[1]), key=KeyRule(name="run:1", when_taken=WhenTaken.WAIT))
    (begun,) = postgres_store.runs.begin([other])
    assert begun.admission == Wait(on="one", reason="key run:1: job a is under way")
    connection.rollback()
    assert isinstance(postgres_store.runs.begin([other])[0].admission, Admit)


def test_a_finish_is_recorded_though_a_transaction_still_has_the_lease_locked(
    postgres_store: PostgresStore, connection: Connection
) -> None:
    one = ask("a", "account:7")
    (begun,) = postgres_store.runs.begin([one])
    assert begun.fence is not None
    check_fence(connection, schema=SCHEMA, lease="account:7", fence=begun.fence)

    postgres_store.runs.finish([end(one, begun)])

    assert postgres_store.runs.runs(["a"])["a"].state is JobState.DONE
    assert postgres_store.runs.lease("account:7") is not None


def test_a_lease_that_is_locked_for_a_moment_is_freed_by_its_finish(
    postgres_store: PostgresStore, connection: Connection
) -> None:
    one = ask("a", "account:7")
    (begun,) = postgres_store.runs.begin([one])
    connection.execute(text("SELECT 1 FROM slackwater.leases FOR UPDATE"))
    waiting = text("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")

    with ThreadPoolExecutor(1) as threads:
        finishing = threads.submit(postgres_store.runs.finish, [end(one, begun)])
        while not finishing.done() and connection.execute(waiting).one_or_none() is None:
            pass
        connection.rollback()
        finishing.result(timeout=60)

    assert postgres_store.runs.lease("account:7") is None


def test_an_end_that_is_told_while_its_job_is_kept_leaves_nothing_that_counts_and_pruning_removes_it(
    postgres_store: PostgresStore, connection: Connection
) -> None:
    one = ask("a", "account:7")
    (begun,) = postgres_store.runs.begin([one])
    driver: Any = connection.connection.dbapi_connection
    assert Keeping(SCHEMA).keep(Pipeline(driver), BOOTS[0], [offer(one)]) == {Start("a", 0, 1)}
    waiting = text("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")

    with ThreadPoolExecutor(1) as threads:
        finishing = threads.submit(postgres_store.runs.finish, [end(one, begun)])
        while not finishing.done() and connection.execute(waiting).one_or_none() is None:
            pass
        assert not finishing.done()
        connection.commit()
        finishing.result(timeout=60)

    rows = text("SELECT count(*) FROM slackwater.under_way")
    assert connection.execute(rows).scalar_one() == 1
    assert postgres_store.runs.under_way(["a"]) == {}
    assert list(postgres_store.runs.leaseless(limit=9)) == []
    postgres_store.runs.prune(before=NOW - timedelta(days=999))
    assert connection.execute(rows).scalar_one() == 0


def test_a_job_that_ends_at_this_moment_is_not_kept_and_not_waited_for(
    postgres_store: PostgresStore, connection: Connection
) -> None:
    ending, goes_on = ask("a", "account:7"), ask("b", "account:8")
    postgres_store.runs.begin([ending, goes_on])
    connection.execute(text("SELECT 1 FROM slackwater.runs WHERE job = 'a' FOR UPDATE"))
    kept = postgres_store.runs.keep(BOOTS[0], [offer(ending), offer(goes_on)])
    assert kept == {Start("b", 0, 1)}
    connection.rollback()


def test_a_cursor_of_the_driver_checks_a_fence_too(postgres_store: PostgresStore, driver: psycopg.Connection) -> None:
    fence = fence_of(postgres_store, ask("a", "account:7"))
    taker = ask("b", "account:7", boot=BOOTS[1], when_taken=WhenTaken.REPLACE)
    with driver.cursor() as cursor:
        check_fence(cursor, schema=SCHEMA, lease="account:7", fence=fence)
        assert isinstance(postgres_store.runs.begin([taker])[0].admission, Wait)
        driver.commit()

        assert isinstance(postgres_store.runs.begin([taker])[0].admission, Admit)
        with pytest.raises(StaleFence):
            check_fence(cursor, schema=SCHEMA, lease="account:7", fence=fence)


def test_a_fence_is_stale_when_its_lease_was_freed_and_in_another_schema(
    postgres_store: PostgresStore, migrated_url: str, connection: Connection
) -> None:
    fence = fence_of(postgres_store, ask("a", "account:7"))
    other = PostgresStore(migrated_url, schema="Test-night")
    other.migrate()

    with pytest.raises(StaleFence):
        check_fence(connection, schema="Test-night", lease="account:7", fence=fence)
    other_fence = fence_of(other, ask("a", "account:7"))
    check_fence(connection, schema="Test-night", lease="account:7", fence=other_fence)
    connection.rollback()
    postgres_store.runs.lapse(BOOTS[0], ["a"])
    with pytest.raises(StaleFence):
        check_fence(connection, schema=SCHEMA, lease="account:7", fence=fence)
    other.close()


def test_a_body_begins_and_ends_in_a_schema_that_is_on_no_search_path(
    postgres_store: PostgresStore, migrated_url: str
) -> None:
    other = PostgresStore(migrated_url, schema="Test-night")
    other.migrate()
    one = replace(ask("a", "account:7"), key=KeyRule(name="run:1"))
    for end_state in (JobState.QUEUED, JobState.DONE):
        (begun,) = other.runs.begin([one])
        other.runs.finish([replace(end(one, begun), key="run:1", state=end_state)])
    assert other.runs.runs(["a"])["a"].state is JobState.DONE
    assert not postgres_store.runs.runs(["a"])
    other.close()


def test_a_check_outside_a_transaction_is_refused(
    postgres_store: PostgresStore, theirs: Engine, driver: psycopg.Connection
) -> None:
    fence = fence_of(postgres_store, ask("a", "account:7"))
    with (
        theirs.execution_options(isolation_level="AUTOCOMMIT").connect() as connection,
        pytest.raises(ConfigurationError, match="outside a transaction"),
    ):
        check_fence(connection, schema=SCHEMA, lease="account:7", fence=fence)
    driver.autocommit = True
    with driver.cursor() as cursor, pytest.raises(ConfigurationError, match="outside a transaction"):
        check_fence(cursor, schema=SCHEMA, lease="account:7", fence=fence)
    with driver.transaction(), driver.cursor() as cursor:
        check_fence(cursor, schema=SCHEMA, lease="account:7", fence=fence)


def test_renewing_and_keeping_are_one_statement_each_and_admitting_a_few_however_many_bodies(
    postgres_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    execute = psycopg.Cursor.execute

    def note(cursor: psycopg.Cursor[Any], query: Any, *rest: Any, **options: Any) -> psycopg.Cursor[Any]:
        seen.append(str(query))
        return execute(cursor, query, *rest, **options)

    monkeypatch.setattr(psycopg.Cursor, "execute", note)
    counts = {}
    for many in (2, 1000):
        asks = [replace(ask(f"{many}-{n}", f"{many}-{n}"), key=KeyRule(name=f"{many}-{n}")) for n in range(many)]
        seen.clear()
        postgres_store.runs.begin(asks)
        begun = len(seen)
        postgres_store.runs.renew(BOOTS[0], [one.job for one in asks], lives_for=MINUTE)
        renewed = len(seen)
        assert len(postgres_store.runs.keep(BOOTS[0], [offer(one) for one in asks])) == many
        counts[many] = (begun, renewed - begun, len(seen) - renewed)

    assert counts[2] == counts[1000]
    assert 0 < counts[1000][0] <= 10
    assert counts[1000][1:] == (1, 1)

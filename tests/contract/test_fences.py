"""The fence in the transactions of an application's own code: Django's `atomic`, SQLAlchemy's sessions, psycopg's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest
from django import db
from django.db import transaction
from sqlalchemy import make_url
from tests.contract.callers import KINDS, Caller, caller_at, driver_url
from tests.contract.django_callers import django_at

from slackwater import Fence
from slackwater.adapters.celery.bodies import Body, running
from slackwater.adapters.celery.fence import fence_here, fenced
from slackwater.adapters.postgres import PostgresStore
from slackwater.core.admission import Admission, Admit, Ask, LeaseRule, Wait, WhenTaken
from slackwater.errors import ConfigurationError, StaleFence

LEASE = "account:7"
HOLDER = Ask(
    job="a",
    tries=0,
    task="sync",
    boot=UUID(int=1),
    redelivered=False,
    lease=LeaseRule(name=LEASE, when_taken=WhenTaken.REPLACE, lives_for=timedelta(minutes=1)),
)
TAKER = replace(HOLDER, job="b", boot=UUID(int=2))


@pytest.fixture
def works(postgres_store: PostgresStore, migrated_url: str) -> Iterator[Callable[[], list[str]]]:
    """What is committed of the application's own work, in the store's database."""
    with psycopg.connect(driver_url(migrated_url), autocommit=True) as connection:
        connection.execute("CREATE TABLE public.works (what text)")
        yield lambda: [what for (what,) in connection.execute("SELECT what FROM works ORDER BY what")]


@pytest.fixture(params=KINDS)
def caller(request: pytest.FixtureRequest, migrated_url: str, works: Callable[[], list[str]]) -> Iterator[Caller]:
    with caller_at(request.param, migrated_url) as caller:
        yield caller


@pytest.fixture
def body(postgres_store: PostgresStore) -> Iterator[Body]:
    """A body that holds the lease and runs here."""
    (begun,) = postgres_store.runs.begin([HOLDER])
    body = Body(lease=LEASE, fence=begun.fence)
    with running(body):
        yield body


def taken(store: PostgresStore) -> Admission:
    """Try to take the lease from its holder; return what becomes of that."""
    return store.runs.begin([TAKER])[0].admission


def here(store: PostgresStore) -> Fence:
    fence = fence_here(lambda: store)
    assert fence is not None
    return fence


@pytest.mark.usefixtures("body")
def test_a_live_holder_commits(caller: Caller, postgres_store: PostgresStore, works: Callable[[], list[str]]) -> None:
    with caller.transaction(), fenced(caller.fenceable, lambda: postgres_store):
        caller.write("works", "first")
    with caller.transaction():
        caller.write("works", "second")
        here(postgres_store).check(caller.fenceable)
    assert works() == ["first", "second"]


@pytest.mark.usefixtures("body")
def test_nothing_of_a_stale_holder_is_committed(
    caller: Caller, postgres_store: PostgresStore, works: Callable[[], list[str]]
) -> None:
    assert isinstance(taken(postgres_store), Admit)
    with (
        pytest.raises(StaleFence, match=f"lease {LEASE}: fence .* is stale"),
        caller.transaction(),
        fenced(caller.fenceable, lambda: postgres_store),
    ):
        caller.write("works", "too late")
    assert works() == []


@pytest.mark.usefixtures("body")
def test_from_the_check_to_the_commit_the_lease_cannot_be_taken(caller: Caller, postgres_store: PostgresStore) -> None:
    with caller.transaction():
        with fenced(caller.fenceable, lambda: postgres_store):
            caller.write("works", "mine")
        assert taken(postgres_store) == Wait(on=LEASE, reason=f"lease {LEASE}: its holder commits")
    assert isinstance(taken(postgres_store), Admit)


@pytest.mark.usefixtures("body")
def test_a_check_in_an_inner_block_holds_until_the_outer_one_commits(
    caller: Caller, postgres_store: PostgresStore, works: Callable[[], list[str]]
) -> None:
    with caller.transaction():
        with caller.inner(), fenced(caller.fenceable, lambda: postgres_store):
            caller.write("works", "inner")
        assert isinstance(taken(postgres_store), Wait)
        caller.write("works", "outer")
    assert works() == ["inner", "outer"]


@pytest.mark.usefixtures("body")
def test_a_check_in_an_inner_block_that_is_rolled_back_goes_with_it(
    caller: Caller, postgres_store: PostgresStore, works: Callable[[], list[str]]
) -> None:
    def undo_inner_block() -> None:
        with caller.inner():
            with fenced(caller.fenceable, lambda: postgres_store):
                caller.write("works", "inner")
            assert isinstance(taken(postgres_store), Wait)
            raise ZeroDivisionError

    def work() -> None:
        with caller.transaction():
            with pytest.raises(ZeroDivisionError):
                undo_inner_block()
            assert isinstance(taken(postgres_store), Admit)
            caller.write("works", "outer")
            here(postgres_store).check(caller.fenceable)

    with pytest.raises(StaleFence):
        work()
    assert works() == []


@pytest.mark.usefixtures("body")
def test_a_stale_fence_that_is_caught_costs_its_own_block_alone(
    caller: Caller, postgres_store: PostgresStore, works: Callable[[], list[str]]
) -> None:
    assert isinstance(taken(postgres_store), Admit)
    with caller.transaction():
        caller.write("works", "outer")
        with pytest.raises(StaleFence), caller.inner(), fenced(caller.fenceable, lambda: postgres_store):
            caller.write("works", "inner")
    assert works() == ["outer"]


@pytest.mark.usefixtures("body")
@pytest.mark.parametrize("caller", [kind for kind in KINDS if "session" not in kind], indirect=True)
def test_outside_a_transaction_a_block_is_refused_before_it_writes(
    caller: Caller, postgres_store: PostgresStore, works: Callable[[], list[str]]
) -> None:
    with (
        pytest.raises(ConfigurationError, match=r"^a fence is checked outside a transaction.*atomic\(\)") as refused,
        fenced(caller.fenceable, lambda: postgres_store),
    ):
        caller.write("works", "alone")
    assert works() == []
    assert "\n" not in str(refused.value)
    with pytest.raises(ConfigurationError, match="outside a transaction"):
        here(postgres_store).check(caller.fenceable)


@pytest.mark.usefixtures("body")
@pytest.mark.parametrize("kind", KINDS)
def test_a_database_without_the_leases_is_refused_in_one_line(
    kind: str, postgres_store: PostgresStore, migrated_url: str
) -> None:
    elsewhere = make_url(migrated_url).set(database="postgres").render_as_string(hide_password=False)
    with (
        caller_at(kind, elsewhere) as caller,
        pytest.raises(ConfigurationError, match=r"without the table slackwater\.leases; .*the store's own") as refused,
        caller.transaction(),
    ):
        here(postgres_store).check(caller.fenceable)
    assert "\n" not in str(refused.value)


@pytest.mark.usefixtures("body", "works")
def test_a_transaction_that_django_begins_by_hand_is_one(postgres_store: PostgresStore, migrated_url: str) -> None:
    with django_at(migrated_url):
        transaction.set_autocommit(False)
        with fenced(db.connection, lambda: postgres_store):
            pass
        assert isinstance(taken(postgres_store), Wait)
        transaction.rollback()
    assert isinstance(taken(postgres_store), Admit)


@pytest.mark.usefixtures("body")
def test_another_kind_of_database_of_djangos_is_refused_in_one_line(
    postgres_store: PostgresStore, migrated_url: str
) -> None:
    with django_at(migrated_url):
        db.connections.databases["lite"] = {
            **db.connections.databases["default"],
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": ":memory:",
        }
        with (
            transaction.atomic(using="lite"),
            pytest.raises(ConfigurationError, match="Django's database 'lite' is SQLite, and leases are in PostgreSQL"),
        ):
            here(postgres_store).check(db.connections["lite"])
        db.connections["lite"].close()


@pytest.mark.usefixtures("body")
def test_what_is_no_connection_is_refused_in_one_line(postgres_store: PostgresStore) -> None:
    with pytest.raises(ConfigurationError, match="a fence cannot be checked with str; give a session or connection"):
        here(postgres_store).check("postgresql:///books")

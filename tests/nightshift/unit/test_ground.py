"""A night's own database, and a clean broker afterwards."""

from contextlib import suppress

import kombu
import pytest
import redis
import sqlalchemy as sa

from nightshift.errors import NightError
from nightshift.ground import clear_broker, drop_database, engine_of, own_database
from slackwater.local import PostgreSQL

SILENT_STORE = "postgresql://me:secret@127.0.0.1:1/books"
SILENT_BROKER = "redis://:secret@127.0.0.1:1/0"


def names_on(server: str) -> set[str]:
    engine = engine_of(server)
    with engine.connect() as connection:
        names = set(connection.execute(sa.text("SELECT datname FROM pg_database")).scalars())
    engine.dispose()
    return names


def test_a_database_is_there_for_as_long_as_the_night(postgres_server: PostgreSQL) -> None:
    with own_database(postgres_server.url, "nightshift_one") as url:
        engine = engine_of(url)
        with engine.connect() as still_open:
            assert still_open.execute(sa.text("SELECT current_database()")).scalar() == "nightshift_one"
            assert "nightshift_one" in names_on(postgres_server.url)
    engine.dispose()
    assert "nightshift_one" not in names_on(postgres_server.url)


def test_a_database_goes_when_the_night_fails_and_the_failure_is_what_is_told(postgres_server: PostgreSQL) -> None:
    with pytest.raises(ValueError, match="the night"), own_database(postgres_server.url, "nightshift_two"):
        raise ValueError("the night failed")
    assert "nightshift_two" not in names_on(postgres_server.url)


def test_a_name_that_is_taken_is_an_error_of_the_server(postgres_server: PostgreSQL) -> None:
    with (
        own_database(postgres_server.url, "nightshift_three"),
        pytest.raises(NightError, match="cannot create a database"),
        own_database(postgres_server.url, "nightshift_three"),
    ):
        pass


def test_a_database_that_cannot_be_dropped_is_named_without_the_password() -> None:
    told: list[str] = []
    assert not drop_database(SILENT_STORE, "nightshift_x", left_behind=told.append)
    [line] = told
    assert line.startswith("note: database nightshift_x is left on postgresql://me:***@127.0.0.1:1/books (")
    assert not drop_database(SILENT_STORE, "nightshift_x", left_behind=None)


def test_only_what_bears_the_nights_prefix_is_cleared(fresh_valkey_url: str) -> None:
    with redis.Redis.from_url(fresh_valkey_url, decode_responses=True) as client:
        client.mset({"night_1_a": 1, "night_1_b": 1, "night_11_a": 1, "of somebody else": 1})
        told: list[str] = []
        assert clear_broker(fresh_valkey_url, prefix="night_1_", queues=[], left_behind=told.append)
        assert set(client.scan_iter()) == {"night_11_a", "of somebody else"}
    assert told == []


@pytest.mark.rabbitmq
def test_queues_and_exchanges_are_taken_off_a_rabbitmq_and_clearing_again_is_no_error(
    rabbitmq_url: str, rabbitmq_prefix: str
) -> None:
    lane, other = f"{rabbitmq_prefix}lane", f"{rabbitmq_prefix}other"
    told: list[str] = []
    with kombu.Connection(rabbitmq_url) as connection:
        for name in (lane, other):
            kombu.Queue(name, exchange=kombu.Exchange(name), channel=connection.default_channel).declare()
        for _ in range(2):
            assert clear_broker(rabbitmq_url, prefix=rabbitmq_prefix, queues=[lane], left_behind=told.append)
        assert there(connection, other) == {"queue", "exchange"}
        assert there(connection, lane) == set()
        assert clear_broker(rabbitmq_url, prefix=rabbitmq_prefix, queues=[other], left_behind=told.append)
    assert told == []


def there(connection: kombu.Connection, name: str) -> set[str]:
    """Tell what of this name a broker has; a refused question closes its channel."""
    found = set()
    for kind, ask in (("queue", "queue_declare"), ("exchange", "exchange_declare")):
        channel = connection.channel()
        with suppress(*connection.channel_errors):
            getattr(channel, ask)(name, passive=True, **({"type": "direct"} if kind == "exchange" else {}))
            found.add(kind)
    return found


@pytest.mark.parametrize("url", [SILENT_BROKER, "amqp://guest:secret@127.0.0.1:1//"])
def test_a_broker_that_does_not_answer_is_named_without_the_password(url: str) -> None:
    told: list[str] = []
    assert not clear_broker(url, prefix="night_1_", queues=["night_1_lane"], left_behind=told.append)
    [line] = told
    assert line.startswith("note: what begins with night_1_ is left on ")
    assert "secret" not in line

"""The fixtures that every test may ask for."""

import kombu
import pytest
import redis
import sqlalchemy as sa


def test_a_fresh_valkey_database_is_empty_and_keeps_what_it_is_told(fresh_valkey_url: str) -> None:
    with redis.Redis.from_url(fresh_valkey_url) as client:
        assert client.dbsize() == 0
        client.set("one", 1)
        assert client.get("one") == b"1"


def test_the_next_fresh_valkey_database_does_not_hold_what_the_last_test_wrote(fresh_valkey_url: str) -> None:
    with redis.Redis.from_url(fresh_valkey_url) as client:
        assert client.dbsize() == 0
        client.set("one", 1)


def test_a_fresh_postgres_database_is_empty_and_syncs_what_is_committed(postgres_url: str) -> None:
    engine = sa.create_engine(postgres_url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        assert sa.inspect(connection).get_table_names() == []
        connection.execute(sa.text("CREATE TABLE word (text text)"))
        connection.execute(sa.text("INSERT INTO word VALUES ('Käse')"))
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT upper(text) FROM word")).scalar_one() == "KÄSE"
        settings = [
            connection.execute(sa.text(f"SHOW {name}")).scalar_one() for name in ("fsync", "synchronous_commit")
        ]
        assert settings == ["on", "on"]


@pytest.mark.rabbitmq
@pytest.mark.rabbitmq
def test_a_message_goes_through_the_session_s_rabbitmq(rabbitmq_url: str, rabbitmq_prefix: str) -> None:
    name = f"{rabbitmq_prefix}words"
    with kombu.Connection(rabbitmq_url) as connection:
        with connection.SimpleQueue(name) as queue:
            queue.put("Käse")
            message = queue.get(timeout=10)
            assert message.payload == "Käse"
            message.ack()
        kombu.Queue(name).bind(connection.default_channel).delete()

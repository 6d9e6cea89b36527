"""What a killed night left on given servers."""

from pathlib import Path

import redis

from nightshift import footprint
from nightshift.footprint import Footprint
from nightshift.ground import engine_of
from slackwater.local import PostgreSQL, masked

LEFT = Footprint(
    database="nightshift_x",
    prefix="night_x_",
    queues=("night_x_lane",),
    store="postgresql://elsewhere/books",
    broker="redis://elsewhere/0",
)


def test_what_is_written_down_is_read_again_until_it_is_forgotten(tmp_path: Path) -> None:
    assert footprint.read(tmp_path) is None
    LEFT.write(tmp_path)
    assert footprint.read(tmp_path) == LEFT
    footprint.forget(tmp_path)
    assert footprint.read(tmp_path) is None


def test_a_torn_file_is_none(tmp_path: Path) -> None:
    (tmp_path / footprint.FILE).write_text('{"database": "night')
    assert footprint.read(tmp_path) is None


def test_what_is_left_on_the_same_servers_is_taken_away(
    tmp_path: Path, fresh_valkey_url: str, postgres_server: PostgreSQL
) -> None:
    engine = engine_of(postgres_server.url).execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE DATABASE nightshift_x")
    with redis.Redis.from_url(fresh_valkey_url) as client:
        client.set("night_x_key", 1)
        left = Footprint(
            database=LEFT.database,
            prefix=LEFT.prefix,
            queues=LEFT.queues,
            store=masked(postgres_server.url),
            broker=masked(fresh_valkey_url),
        )
        left.write(tmp_path)
        told: list[str] = []
        footprint.clean(tmp_path, store_url=postgres_server.url, broker_url=fresh_valkey_url, tell=told.append)
        assert client.dbsize() == 0
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT 1 FROM pg_database WHERE datname = 'nightshift_x'").all()
    engine.dispose()
    assert found == []
    assert len(told) == 2
    assert footprint.read(tmp_path) is None


def test_what_is_left_on_other_servers_is_told_once(tmp_path: Path) -> None:
    LEFT.write(tmp_path)
    told: list[str] = []
    for _ in range(2):
        footprint.clean(tmp_path, store_url=None, broker_url="redis://here/0", tell=told.append)
    assert told == [
        "note: a killed night left database nightshift_x on postgresql://elsewhere/books; drop it there",
        "note: a killed night left queues and keys night_x_* on redis://elsewhere/0; delete them there",
    ]

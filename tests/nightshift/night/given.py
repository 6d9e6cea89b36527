"""What nights have put on servers that were given to them."""

import redis
import sqlalchemy as sa


def left_on_valkey(url: str) -> list[str]:
    with redis.Redis.from_url(url, decode_responses=True) as client:
        return sorted(client.scan_iter())


def databases_of_nights(server: str) -> list[str]:
    engine = sa.create_engine(server, poolclass=sa.NullPool)
    with engine.connect() as connection:
        return list(
            connection.execute(sa.text("SELECT datname FROM pg_database WHERE datname ~ '^nightshift_'")).scalars()
        )

"""The links to a night's servers: addresses that lead through proxies, and what no proxy can stand before."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import make_url

from nightshift.chaos.links import BROKER, RESULTS, STORE, open_links
from nightshift.errors import NightError
from slackwater.local import PostgreSQL

VALKEY = "redis://:secret@127.0.0.1:6400/0"


def env(
    *, broker: str = VALKEY, results: str = VALKEY, store: str = "postgresql://me@127.0.0.1:5499/books"
) -> dict[str, str]:
    return {"CELERY_BROKER_URL": broker, "CELERY_RESULT_BACKEND": results, "SLACKWATER_STORE_URL": store}


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="links-") as folder:
        yield Path(folder)


def test_results_on_the_broker_share_its_link(tmp_path: Path) -> None:
    with open_links(env(), sockets=tmp_path) as links:
        assert set(links.proxies) == {BROKER, STORE}
        through = links.environment
        assert through["CELERY_BROKER_URL"] == through["CELERY_RESULT_BACKEND"] != VALKEY
        assert through["CELERY_BROKER_URL"].startswith("redis://:secret@127.0.0.1:")


def test_results_beside_a_rabbitmq_have_a_link_of_their_own(tmp_path: Path) -> None:
    with open_links(env(broker="amqp://guest:guest@127.0.0.1//"), sockets=tmp_path) as links:
        assert set(links.proxies) == {BROKER, RESULTS, STORE}
        port = links.proxies[BROKER].port
        assert links.environment["CELERY_BROKER_URL"] == f"amqp://guest:guest@127.0.0.1:{port}//"


@pytest.fixture
def through(postgres_server: PostgreSQL, tmp_path: Path) -> Iterator[str]:
    with open_links(env(store=postgres_server.url), sockets=tmp_path) as links:
        yield links.environment["SLACKWATER_STORE_URL"]


def test_a_server_with_a_socket_is_reached_through_a_socket_that_nobody_else_can_enter(through: str) -> None:
    url = make_url(through)
    assert url.host is None
    folder = Path(str(url.query["host"]))
    assert folder.stat().st_mode & 0o077 == 0
    engine = sa.create_engine(through, poolclass=sa.NullPool)
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT 1")).scalar() == 1


def test_beside_a_socket_that_others_can_reach_the_link_is_in_the_nights_folder(short: Path) -> None:
    shared, own = short / "shared", short / "own"
    shared.mkdir(mode=0o755)
    own.mkdir(mode=0o700)
    with open_links(env(store=f"postgresql:///books?host={shared}"), sockets=own) as links:
        assert make_url(links.environment["SLACKWATER_STORE_URL"]).query["host"] == str(own)


def test_a_socket_whose_path_would_be_too_long_is_refused_in_one_line(short: Path) -> None:
    shared = short / "shared"
    shared.mkdir(mode=0o755)
    store = env(store=f"postgresql:///books?host={shared}")
    with pytest.raises(NightError, match="pass a shorter --folder"), open_links(store, sockets=short / ("long" * 30)):
        pass


@pytest.mark.parametrize("scheme", ["amqps", "rediss"])
def test_a_broker_behind_tls_is_refused_in_one_line(scheme: str, tmp_path: Path) -> None:
    with pytest.raises(NightError, match="without TLS"), open_links(env(broker=f"{scheme}://h/0"), sockets=tmp_path):
        pass

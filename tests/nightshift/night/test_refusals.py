"""Nights that cannot run: each says so in one line, with exit code 2, and leaves nothing behind."""

import socket
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.nightshift.night.conftest import StartNight

from slackwater.local import PostgreSQL

pytestmark = pytest.mark.timeout(180)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--minutes=soon"], ["--minutes", "soon", "--help"]),
        (["--minutes=0.1"], ["--minutes", "0.1", "0.5"]),
        (["--plan=colide"], ["--plan", "colide", "collide", "shifted"]),
        (["--seed=x"], ["--seed"]),
        (["--nonsense"], ["--nonsense"]),
        (["--report=/proc/nightshift/report.json"], ["/proc/nightshift/report.json", "give a file"]),
        (["--report=page.html"], ["page.html", ".json"]),
        (["--faults=/nowhere.json"], ["--faults", "/nowhere.json"]),
        (["--faults=/etc/hostname"], ["script of faults /etc/hostname", "see nightshift.world.faults"]),
        (["--broker=redis://:secret@127.0.0.1:1/0"], ["broker", "127.0.0.1:1", "does not answer"]),
        (["--broker=http://127.0.0.1"], ["broker", "http", "redis://"]),
        (["--store=postgresql://me:secret@127.0.0.1:1/books"], ["127.0.0.1:1", "does not answer"]),
        (["--store=sqlite:///books"], ["sqlite", "postgresql://"]),
    ],
)
def test_a_night_that_cannot_run_says_why_before_it_starts(
    start_night: StartNight, options: list[str], words: list[str]
) -> None:
    night = start_night(*options)
    assert night.wait() == 2
    told = night.told()
    assert all(word in told for word in words), told
    assert "secret" not in told
    assert "books:" not in night.stdout
    assert night.left_running() == []


@pytest.mark.parametrize(
    ("given", "meant"),
    [("SLACKWATER_PROBE_EVRY", "SLACKWATER_PROBE_EVERY"), ("NIGHTSHIFT_READER", "NIGHTSHIFT_READERS")],
)
def test_a_setting_that_is_none_is_refused_before_anything_starts(
    start_night: StartNight, given: str, meant: str
) -> None:
    night = start_night(variables={given: "1"})
    assert night.wait() == 2
    assert night.told() == f"nightshift: environment: {given} is no setting; did you mean {meant}?"
    assert night.stdout == ""


def test_a_report_named_like_a_folder_is_refused(start_night: StartNight, tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    night = start_night(f"--report={tmp_path / 'report.json'}")
    assert night.wait() == 2
    assert str(tmp_path / "report.html") in night.told()


def test_a_folder_that_cannot_be_made_is_refused(start_night: StartNight, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    night = start_night(folder=tmp_path / "file" / "night")
    assert night.wait() == 2
    assert f"{tmp_path / 'file' / 'night'}: Not a directory; pass another folder" in night.told()


def test_a_store_that_lets_us_make_no_database_is_refused(
    start_night: StartNight, postgres_server: PostgreSQL, valkey_url: str
) -> None:
    engine = sa.create_engine(postgres_server.url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text("CREATE ROLE guest"))
        url = sa.make_url(postgres_server.url).update_query_dict({"options": "-crole=guest"})
        night = start_night(f"--store={url.render_as_string(hide_password=False)}", f"--broker={valkey_url}")
        assert night.wait() == 2
        connection.execute(sa.text("DROP ROLE guest"))
    engine.dispose()
    assert "permission denied to create database" in night.told()
    assert night.told().endswith("give the user CREATEDB")
    assert night.left_running() == []


def test_a_taken_port_of_the_world_is_named(start_night: StartNight) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        night = start_night(f"--world-port={port}")
        assert night.wait() == 2
    assert f"port {port} on 127.0.0.1: Address already in use" in night.told()
    assert "--world-port" in night.told()
    assert night.left_running() == []

"""What ends a night early: one clear line, exit code 2, and no process left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
from tests.nightshift.night.conftest import StartNight
from tests.nightshift.night.given import databases_of_nights, left_on_valkey
from tests.nightshift.night.running import RunningNight

from slackwater.local import PostgreSQL

pytestmark = pytest.mark.timeout(300)


def test_a_signal_in_the_middle_ends_a_night_cleanly(start_night: StartNight) -> None:
    night = start_night()
    night.until_in_the_middle()
    night.popen.send_signal(signal.SIGINT)
    assert night.wait() == 2
    assert night.told() == "nightshift: stopped by SIGINT before the night was over; nothing is left running"
    assert night.left_running() == []
    assert not night.report.exists()


def test_a_signal_while_servers_start_ends_a_night_cleanly(start_night: StartNight) -> None:
    night = start_night()
    night.until(lambda: bool(night.children()))
    night.popen.send_signal(signal.SIGINT)
    assert night.wait() == 2
    assert "stop" in night.told()
    assert night.left_running() == []


def test_a_second_night_in_the_same_folder_is_refused_and_a_signal_after_the_first_ends_it_without_a_report(
    start_night: StartNight,
) -> None:
    night = start_night()
    night.until(lambda: bool(night.children()))
    second = start_night()
    assert second.wait() == 2
    assert f"another run (pid {night.popen.pid}, since " in second.told()
    assert second.stdout == ""
    night.spoil_receipts(but=1)
    night.until_in_the_middle()
    # Looking at nothing but its words: what follows them takes only a moment.
    until = time.monotonic() + 110
    while "the night is over" not in night.stdout:
        assert time.monotonic() < until, night.stdout
        time.sleep(0.02)
    night.popen.send_signal(signal.SIGTERM)
    assert night.wait() == 2
    assert night.told() == "nightshift: stopped by SIGTERM before its report was written; nothing is left running"
    assert night.left_running() == []
    assert not night.report.exists()


def test_output_that_nobody_reads_any_more_ends_a_night_cleanly(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "nightshift", "night", "--minutes=0.5", f"--folder={tmp_path / 'night'}"]
    night = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert night.stdout is not None
    assert night.stderr is not None
    assert night.stdout.readline().startswith("night of ")
    night.stdout.close()
    told = night.stderr.read()
    night.stderr.close()
    assert night.wait(timeout=120) == 2
    assert told == "nightshift: nobody reads the output any more; the night is stopped, nothing is left running\n"


@pytest.mark.parametrize("name", ["balancer", "valkey"])
def test_kill_9_of_a_child_while_others_start_ends_a_night_and_names_it(start_night: StartNight, name: str) -> None:
    night = start_night()
    night.until(lambda: name in night.children() and "books: " in night.stdout)
    assert_its_death_ends_the_night(night, name)


def test_kill_9_of_the_world_that_has_just_opened_ends_a_night_and_names_it(start_night: StartNight) -> None:
    night = start_night()
    log = night.folder / "logs" / "world.log"
    night.until(lambda: log.exists() and "ready" in log.read_text())
    assert_its_death_ends_the_night(night, "world")


@pytest.mark.parametrize("name", ["worker-agent_realtime", "postgresql"])
def test_kill_9_of_a_child_in_the_middle_ends_a_night_and_names_it(start_night: StartNight, name: str) -> None:
    night = start_night()
    night.until_in_the_middle()
    assert_its_death_ends_the_night(night, name)


def test_what_a_killed_night_left_on_given_servers_is_taken_away_by_the_next_one(
    start_night: StartNight, fresh_valkey_url: str, postgres_server: PostgreSQL
) -> None:
    given = (f"--broker={fresh_valkey_url}", f"--store={postgres_server.url}")
    killed = start_night(*given)
    killed.until_in_the_middle()
    killed.popen.kill()
    killed.wait()
    assert killed.left_running() == []
    [database] = databases_of_nights(postgres_server.url)
    keys = left_on_valkey(fresh_valkey_url)
    assert keys
    night = start_night(*given)
    night.until(lambda: "books: " in night.stdout)
    assert databases_of_nights(postgres_server.url) != [database]
    assert not set(keys) & set(left_on_valkey(fresh_valkey_url))
    assert f"dropped database {database} of a killed night" in night.stdout
    night.popen.send_signal(signal.SIGTERM)
    assert night.wait() == 2
    assert databases_of_nights(postgres_server.url) == []
    assert left_on_valkey(fresh_valkey_url) == []


def test_a_worker_that_hangs_is_named_and_nothing_is_due_after_the_night(start_night: StartNight) -> None:
    night = start_night()
    night.until_in_the_middle()
    worker = psutil.Process(night.children()["worker-transaction_postprocess"])
    for each in (*worker.children(recursive=True), worker):
        each.suspend()
    assert night.wait(within_s=200) in (0, 1), night.stdout + night.stderr
    assert "worker transaction_postprocess@" in night.stdout
    assert "is silent since" in night.stdout
    [schedule] = [one for one in night.json["checks"] if one["name"] == "Every due occurrence is there"]
    assert schedule["ok"], schedule
    assert night.left_running() == []


def test_a_database_that_hangs_does_not_keep_a_night_from_stopping(start_night: StartNight) -> None:
    night = start_night()
    night.until_in_the_middle()
    server = psutil.Process(night.children()["postgresql"])
    for each in (server, *server.children(recursive=True)):
        each.suspend()
    night.popen.send_signal(signal.SIGINT)
    assert night.wait(within_s=75) == 2  # it kills after 5 s, and stops what is left within 20
    assert night.told() == "nightshift: stopped by SIGINT before the night was over; nothing is left running"
    assert night.left_running() == []


def assert_its_death_ends_the_night(night: RunningNight, name: str) -> None:
    pid = night.children()[name]
    os.kill(pid, signal.SIGKILL)
    assert night.wait() == 2
    told = night.told()
    assert told.startswith(f"nightshift: {name} (pid {pid}) was killed by SIGKILL; the night is stopped, its log is ")
    assert told.endswith(f"{name}.log")
    assert night.left_running() == []
    assert not night.report.exists()

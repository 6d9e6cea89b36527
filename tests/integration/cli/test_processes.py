"""Commands that run on, and how they end."""

import os
import re
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from tests.integration.cli.front_door import APP, FrontDoor, eventually, family, runs

from slackwater.adapters.postgres import PostgresStore


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_workers_of_two_lanes_end_with_the_command_that_started_them(
    door: FrontDoor, tmp_path: Path, number: signal.Signals
) -> None:
    log = tmp_path / "log"
    with door.start("worker", "cellar", "bakery", "--loglevel=INFO", log=log) as run:
        eventually(lambda: len(re.findall(r"@\S+ ready", log.read_text())) == 2)
        started = family(run.pid)
        assert len(started) >= 4, "the command, two workers, a pool process"
        os.kill(run.pid, number)
        assert run.wait(30) == (0 if number is signal.SIGTERM else -signal.SIGKILL)
        eventually(lambda: not any(map(runs, started)))
    assert "Traceback" not in log.read_text()


def test_a_worker_that_cannot_fill_its_pool_ends_with_an_exit_code(door: FrontDoor, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with door.start("worker", "bakery", log=log) as run:

        def gave_up() -> bool:
            for each in family(run.pid)[1:]:
                each.kill()
            return run.poll() is not None

        eventually(gave_up, within_s=60)
        assert run.returncode == 1, log.read_text()


def test_migrating_twice_is_migrating_once(door: FrontDoor) -> None:
    done = door.run("-A", APP, "migrate")
    assert (done.returncode, done.stdout) == (0, "store: up to date\n")


def test_what_fell_due_between_the_migration_and_the_balancers_first_look_is_published(
    door: FrontDoor, tmp_path: Path
) -> None:
    fresh = door.with_env(SHOP_PREFIX=f"shop_{uuid4().hex[:8]}_", SHOP_STRAY="1")
    assert "from now on counts bake" in fresh.run("-A", APP, "migrate").stdout
    migrated = datetime.now(UTC)
    store = PostgresStore(fresh.env["SLACKWATER_STORE_URL"], schema=f"{fresh.env['SHOP_PREFIX']}slackwater")
    eventually(lambda: datetime.now(UTC) > migrated + timedelta(seconds=2))
    started = datetime.now(UTC)
    with fresh.start("balancer", log=tmp_path / "log"):
        found = eventually(lambda: store.occurrences.since(migrated - timedelta(seconds=5)), within_s=60)
    store.close()
    assert min(one.due_at for one in found) < started
    assert "slackwater: note: task sweep_the_floor has no lane" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("command", [("balancer",), ("worker", "till")])
def test_a_store_without_tables_is_refused_with_the_remedy(door: FrontDoor, command: tuple[str, ...]) -> None:
    done = door.with_env(SHOP_PREFIX="never_migrated_").run("-A", APP, *command)
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "slackwater migrate" in done.stderr


def test_an_unknown_lane_is_one_line_and_exit_code_2(door: FrontDoor) -> None:
    done = door.run("-A", APP, "worker", "tiil")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "slackwater: worker: no lane is named 'tiil'; did you mean 'till'?\n"


def test_up_refuses_a_wrong_application_before_it_starts_or_writes_anything(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    done = FrontDoor(env={"SHOP_CARELESS": "1"}).run("-A", APP, "up", "--folder", str(folder))
    assert (done.returncode, done.stdout) == (2, "")
    assert "no task is registered as 'brew'" in done.stderr
    assert not any((folder / "logs").iterdir()), "no server was started"
    assert not (folder / "data").exists()
    assert not (folder / "outside.json").exists()


def test_up_runs_everything_and_ctrl_c_leaves_no_process(tmp_path: Path) -> None:
    log, folder = tmp_path / "log", tmp_path / "run"
    with FrontDoor(env={}).start("up", "--folder", str(folder), log=log) as run:
        eventually(lambda: "up: 3 lanes" in log.read_text(), within_s=60)
        balancer = folder / "logs" / "balancer.log"
        eventually(lambda: balancer.exists() and "occurrence ended" in balancer.read_text(), within_s=60)
        started = family(run.pid)
        assert len(started) >= 8, "itself, two servers, the balancer, three workers, a pool process"
        assert (folder / "addresses.sh").exists()
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == 0
        assert not (folder / "addresses.sh").exists()
        eventually(lambda: not any(map(runs, started)))
    assert log.read_text().endswith("down: everything is stopped\n")

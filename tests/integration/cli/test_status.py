"""What `status` shows, with workers alive, and without a broker."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from tests.integration.cli.front_door import APP, FrontDoor, eventually

from slackwater.adapters.postgres import PostgresStore
from slackwater.core.reading import LaneCounts

NOBODY = "redis://127.0.0.1:1/0"


@pytest.fixture
def customer(door: FrontDoor) -> Iterator[Any]:
    """A publisher that knows the shop by its queues alone."""
    app = Celery("customer", broker=door.env["CELERY_BROKER_URL"], set_as_current=False)
    yield lambda task, lane, *args: app.send_task(task, args, queue=door.env["SHOP_PREFIX"] + lane)
    app.close()


def till_of(store: PostgresStore) -> LaneCounts:
    return next(one.lanes["till"] for one in store.presence.all() if "till" in one.lanes)


def lanes_of(door: FrontDoor) -> Any:
    done = door.run("-A", APP, "status", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["lanes"]


def test_status_tells_what_runs_and_what_waits(
    door: FrontDoor, store: PostgresStore, workers: Path, customer: Any, tmp_path: Path
) -> None:
    before = till_of(store)
    customer("serve", "till", str(tmp_path / "closed"))
    customer("fetch", "cellar")
    eventually(lambda: till_of(store).busy == 1)
    lanes = lanes_of(door)
    assert {name: (lane["slots"], lane["workers"]) for name, lane in lanes.items()} == {
        "till": (3, 1),
        "bakery": (1, 1),
        "cellar": (0, 0),
    }
    assert (lanes["till"]["running"], lanes["till"]["started"]) == (1, before.started + 1)
    assert (lanes["cellar"]["ready"], lanes["cellar"]["running"]) == (1, 0)
    (tmp_path / "closed").touch()
    eventually(lambda: till_of(store).finished == before.finished + 1)


def test_status_is_a_command_of_celerys_own_too(door: FrontDoor, workers: Path) -> None:
    done = door.run("-A", APP, "slackwater", "status", program="celery")
    assert done.returncode == 0, done.stderr
    assert "till (protected)" in done.stdout


def test_without_a_broker_what_waits_is_unknown_and_not_zero(door: FrontDoor, workers: Path) -> None:
    down = door.with_env(CELERY_BROKER_URL=NOBODY)
    cellar = lanes_of(down)["cellar"]
    assert (cellar["ready"], cellar["oldest_age_s"], cellar["slots"]) == (None, None, 0)
    shown = down.run("-A", APP, "status")
    assert "unknown" in next(line for line in shown.stdout.splitlines() if line.startswith("cellar"))
    assert "Traceback" not in shown.stderr


def test_what_keeps_others_from_starting_is_told(door: FrontDoor) -> None:
    careless = door.with_env(SHOP_CARELESS="1")
    done = careless.run("-A", APP, "status", "--json")
    assert done.returncode == 0, done.stderr
    status = json.loads(done.stdout)
    assert [finding.split(";")[0] for finding in status["findings"]] == [
        "entry 'brew': no task is registered as 'brew'"
    ]
    assert [note.split(":")[0] for note in status["notes"]] == ["task sweep_the_floor has no lane"]
    shown = careless.run("-A", APP, "status").stdout
    assert all(line in shown for line in [*status["findings"], *status["notes"]])

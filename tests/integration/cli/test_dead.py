"""Dead letters on the command line: listed, shown, replayed, discarded."""

import json
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from tests.integration.cli.front_door import APP, FrontDoor, eventually

from slackwater.adapters.postgres import PostgresStore


def dead(door: FrontDoor, *words: str) -> str:
    done = door.run("-A", APP, "dead", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(door: FrontDoor, *words: str) -> str:
    done = door.run("-A", APP, "dead", *words)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    return line


@pytest.fixture
def bounced(door: FrontDoor, workers: Path, store: PostgresStore) -> Any:
    """Have an order fail; returns its id."""
    app = Celery("customer", broker=door.env["CELERY_BROKER_URL"], set_as_current=False)

    def bounce(customer: str) -> str:
        job = str(app.send_task("bounce", (customer,), queue=door.env["SHOP_PREFIX"] + "till").id)
        eventually(lambda: store.dead_letters.get(job))
        return job

    yield bounce
    app.close()


def test_a_dead_letter_is_listed_and_shown_without_the_jobs_arguments(door: FrontDoor, bounced: Any) -> None:
    job = bounced("a secret customer")
    assert job in dead(door, "list", "--lane", "till", "--cause", "LookupError")
    [letter] = [one for one in json.loads(dead(door, "list", "--json")) if one["job"] == job]
    assert (letter["task"], letter["lane"], letter["state"], letter["tries"]) == ("bounce", "till", "failed", 1)
    shown = dead(door, "show", job)
    assert "LookupError: nobody of that name" in shown
    assert "Traceback (most recent call last)" in shown
    assert "secret" not in shown
    assert json.loads(dead(door, "show", job, "--arguments", "--json"))["args"] == ["a secret customer"]
    assert dead(door, "list", "--lane", "bakery") == "no dead letters\n"


def test_a_replay_with_other_arguments_does_the_work_as_a_new_job(
    door: FrontDoor, bounced: Any, store: PostgresStore, tmp_path: Path
) -> None:
    job, served = bounced("nobody"), tmp_path / "served"
    [line] = dead(door, "replay", job, "--args", json.dumps(["known", str(served)])).splitlines()
    again = line.rsplit(maxsplit=1)[1]
    assert line == f"{job} is replayed as {again}"
    eventually(served.exists)
    assert served.read_text() == f"{again} for {job}"
    letter = store.dead_letters.get(job)
    assert letter is not None
    assert letter.replayed_as == again
    backend: Any = Celery("customer", backend=door.env["CELERY_RESULT_BACKEND"], set_as_current=False).backend
    assert eventually(lambda: backend.get_task_meta(job)["status"] == "SUCCESS"), "the old id has the replay's result"
    assert job not in dead(door, "list")
    assert f"it was replayed already, as {again}" in refused(door, "replay", job)


def test_letters_are_discarded_by_what_they_have_in_common(door: FrontDoor, bounced: Any, store: PostgresStore) -> None:
    jobs = [bounced("nobody") for _ in range(2)]
    assert dead(door, "discard", "--all", "--task", "bounce", "--hours", "1").endswith(" discarded\n")
    assert dead(door, "list", "--task", "bounce") == "no dead letters\n"
    for job in jobs:
        assert "its message is not kept" in refused(door, "replay", job)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("replay",), "name the jobs, or choose with the options and --all"),
        (("replay", "some", "--all"), "name the jobs, or choose with the options and --all"),
        (("replay", "unknown"), "job unknown: there is no dead letter of it"),
        (("show", "unknown"), "job unknown: there is no dead letter of it"),
        (("replay", "unknown", "--args", "[1"), "--args: no JSON"),
        (("replay", "unknown", "--kwargs", "[1]"), "--kwargs: give a JSON object"),
    ],
)
def test_what_cannot_be_done_is_one_line(door: FrontDoor, words: tuple[str, ...], said: str) -> None:
    assert said in refused(door, *words)

"""Whole nights, from the command to the morning report."""

import json
import os
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psutil  # type: ignore[import-untyped]
import pytest
import redis
from tests.nightshift.night.conftest import StartNight
from tests.nightshift.night.given import databases_of_nights, left_on_valkey
from tests.nightshift.night.running import RunningNight

from nightshift import journal
from nightshift.filings.client import FilingClient
from nightshift.tokens import GATEWAY, Credentials, TokenSource
from nightshift.world.books import Filing, read_filings
from slackwater import Tempo, minutes
from slackwater.local import PostgreSQL

pytestmark = pytest.mark.timeout(300)

PLACES = ("held", "queued", "running", "done", "expired", "failed", "dead", "revoked", "duplicate", "lost")
DUE = {
    "update_all_transactions": "02:00",
    "update_accounts": "03:15",
    "categorize_uncategorized_transactions": "04:30",
    "update_all_transactions_again": "06:30",
}
WELL = ("done", "duplicate")
CLICKS = 30
READING, SYNC = "extract_data_from_attachment", "update_all_transactions"


def test_a_good_night_holds_all_checks_and_leaves_nothing_on_given_servers(
    start_night: StartNight, tmp_path: Path, fresh_valkey_url: str, postgres_server: PostgreSQL
) -> None:
    folder = tmp_path / "eine Nacht für Käse & Brot"
    given = (f"--broker={fresh_valkey_url}", f"--store={postgres_server.url}")
    night = start_night(*given, folder=folder, variables={"NIGHTSHIFT_READERS": "2"})
    assert night.wait() == 0, night.stdout + night.stderr
    assert night.stderr == ""
    assert_whole(night)
    assert due_in_berlin(night.json) == DUE
    assert not any(one["state"] == "missed" for one in night.json["occurrences"])
    assert night.json["jobs"]["lost"] == night.json["jobs"]["twice"] == 0
    whole = all(night.json["jobs"][place] == 0 for place in PLACES if place not in WELL)
    verdict = "A good night: all 5 checks hold." if whole else "All 5 checks hold, but not all work was done."
    assert verdict in night.stdout
    first, again = (occurrence_of(night, name)["jobs"] for name in (SYNC, f"{SYNC}_again"))
    accounts = sum(first.values())
    assert first["done"] + again.get("done", 0) == accounts, "each account is synced, and none twice"
    assert again["duplicate"] + again.get("done", 0) == accounts
    assert night.json["restarts"] == night.json["dead_letters"] == night.json["duplicates"] == []
    sweepers = {one["sweeper"]: (one["found_count"], one["error"], one["rescued"]) for one in night.json["sweepers"]}
    assert sweepers["recover_stuck_syncs"] == sweepers["requeue_stuck_runs"] == (0, "", [])
    assert "<svg" in night.report.with_suffix(".html").read_text(encoding="utf-8")
    assert night.left_running() == []
    assert left_on_valkey(fresh_valkey_url) == []
    assert databases_of_nights(postgres_server.url) == []


def test_a_message_deleted_by_hand_and_a_run_filed_twice_are_both_found_and_named(
    start_night: StartNight, fresh_valkey_url: str
) -> None:
    ascii_only = {"PYTHONIOENCODING": "ascii"}  # a terminal that cannot show our signs
    night = start_night(f"--broker={fresh_valkey_url}", variables=ascii_only)
    night.spoil_receipts(but=1)
    lost = delete_one_sync(night, fresh_valkey_url)
    night.until(lambda: len(filings_of(night)) > 0)
    first = filings_of(night)[0]
    second = file_again(night, first)
    assert night.wait() == 1, night.stdout + night.stderr
    assert night.stderr == ""
    assert night.json["ok"] is False
    assert failed_checks(night) == ["Nothing lost", "Nothing twice"]
    assert night.json["jobs"]["lost"] == 1
    assert night.json["jobs"]["twice"] > 0
    [evidence] = check_of(night, "Nothing lost")["evidence"]
    assert evidence.startswith(f"{lost} update_transactions_by_bank_account in transaction_sync, demanded by publish")
    run = first.idempotency_key.removeprefix("agent-run:")
    twice = check_of(night, "Nothing twice")["evidence"]
    assert any(line.startswith(f"run {run} was filed 2 times: ") and second in line for line in twice)
    assert lost in night.stdout
    assert second in night.stdout
    assert_adds_up(night)
    assert night.left_running() == []


def test_a_killed_night_leaves_no_process_and_the_next_one_cleans_up_and_is_good(
    start_night: StartNight, tmp_path: Path
) -> None:
    """Good, though the next one's balancer first looks after the first occurrence was due."""
    folder = tmp_path / ("ein sehr langer Weg zum Ordner der Nacht " * 2) / ("und noch ein Stück weiter " * 3)
    killed = start_night(folder=folder, without=frozenset({"HOME"}))
    killed.until_in_the_middle()
    assert len(killed.family) > len(killed.children())
    killed.popen.kill()
    assert killed.wait() == -signal.SIGKILL
    assert killed.left_running() == []
    first = script_of(killed)
    night = start_night(folder=folder, without=frozenset({"HOME"}))
    night.spoil_receipts(but=1)
    keep_the_balancer_from_looking_before(night, minutes(30))
    assert night.wait() == 0, night.stdout + night.stderr
    assert due_in_berlin(night.json) == DUE
    assert night.stdout.startswith(f"cleaned up after a killed run in {folder}: no process of it was left")
    assert night.stderr == ""
    assert_whole(night)
    assert script_of(night) == first, "the same seed asks for the same runs at the same instants"
    assert night.left_running() == []


def test_a_killed_reader_in_a_colliding_night_is_replaced_and_its_receipt_is_read(start_night: StartNight) -> None:
    night = start_night("--plan=collide")
    night.spoil_receipts(but=2)
    job, pid = next_reading(night)
    os.kill(pid, signal.SIGKILL)
    exit_code = night.wait()
    assert exit_code in (0, 1), night.stdout + night.stderr
    assert night.json["ok"] is (exit_code == 0)
    assert night.json["plan"] == "collide"
    assert due_in_berlin(night.json) == {**DUE, "categorize_uncategorized_transactions": "02:10"}
    assert set(failed_checks(night)) <= {"No person waited behind a batch"}
    assert all(check["evidence"] for check in night.json["checks"] if not check["ok"])
    assert_adds_up(night)
    assert night.json["jobs"]["lost"] == night.json["jobs"]["twice"] == 0
    starts = [event for event in night.events(journal.STARTED) if event["job"] == job]
    ends = [event["state"] for event in night.events(journal.ENDED) if event["job"] == job]
    assert (len(starts), ends) == (2, ["SUCCESS"]), night.stdout
    [restart] = [one for one in night.json["restarts"] if one["job"] == job]
    assert restart == {"job": job, "task": READING, "starts": 2, "is_childs": True}
    [note] = [line for line in check_of(night, "Nothing lost")["notes"] if job in line]
    assert "started again" in note
    assert night.json["figures"]["books"]["unreadable_attachment_count"] > 0
    assert night.left_running() == []


def assert_whole(night: RunningNight) -> None:
    report = night.json
    assert set(report) >= {"ok", "jobs", "realtime", "lanes", "occurrences"}
    assert set(report["jobs"]) >= {"submitted", "twice", *PLACES}
    assert set(report["realtime"]) >= {"count", "p50_s", "p95_s", "max_s"}
    assert set(report["lanes"]) == {"transaction_sync", "transaction_postprocess", "agent_realtime"}
    assert report["ok"] is True
    assert failed_checks(night) == []
    assert report["jobs"]["done"] > 0
    assert report["realtime"]["count"] == CLICKS
    assert_adds_up(night)
    of_occurrences = sum(one["jobs"].get("done", 0) for one in report["occurrences"]) + len(report["occurrences"])
    assert report["jobs"]["done"] == of_occurrences + CLICKS, "occurrences were settled after the last job"


def assert_adds_up(night: RunningNight) -> None:
    jobs = night.json["jobs"]
    assert jobs["submitted"] == sum(jobs[place] for place in PLACES)


def failed_checks(night: RunningNight) -> list[str]:
    return [check["name"] for check in night.json["checks"] if not check["ok"]]


def check_of(night: RunningNight, name: str) -> dict[str, Any]:
    [found] = [check for check in night.json["checks"] if check["name"] == name]
    return dict(found)


def occurrence_of(night: RunningNight, entry: str) -> dict[str, Any]:
    [found] = [one for one in night.json["occurrences"] if one["entry"] == entry]
    return dict(found)


def due_in_berlin(report: dict[str, Any]) -> dict[str, str]:
    zone = ZoneInfo("Europe/Berlin")
    due = {one["entry"]: datetime.fromisoformat(one["due_at"]).astimezone(zone) for one in report["occurrences"]}
    assert len(due) == len(report["occurrences"])
    return {entry: f"{at:%H:%M}" for entry, at in due.items()}


def keep_the_balancer_from_looking_before(night: RunningNight, into_it: timedelta) -> None:
    """Let the night's balancer stand still until so much of the night is over, and a second more."""
    night.until(lambda: "3 lanes, balancer" in night.stdout)
    balancer = psutil.Process(night.children()["balancer"])
    balancer.suspend()
    tempo = Tempo.parse(balancer.environ()["SLACKWATER_TEMPO"])
    due = tempo.run_at(tempo.calendar_origin + into_it)
    night.until(lambda: datetime.now(UTC) > due + timedelta(seconds=1))
    balancer.resume()


def script_of(night: RunningNight) -> list[tuple[int, timedelta]]:
    """Return which runs are clicked, and how long after the first click."""
    clicks = json.loads((night.folder / "clicks.json").read_text())
    instants = [datetime.fromisoformat(at) for _, _, at in clicks]
    return [(run, at - instants[0]) for (_, run, _), at in zip(clicks, instants, strict=True)]


def delete_one_sync(night: RunningNight, url: str) -> str:
    """Take the message of one account's sync out of its queue, before a worker does; return the job's id."""
    found: list[str] = []
    with redis.Redis.from_url(url) as client:
        night.until(lambda: bool(list(client.scan_iter("night_*"))))

        def delete() -> bool:
            for key in client.scan_iter("night_*transaction_sync"):
                for message in client.lrange(key, 0, 0) if client.type(key) == b"list" else ():
                    headers = json.loads(message)["headers"]
                    is_sync = headers["task"] == "update_transactions_by_bank_account"
                    if is_sync and client.lrem(key, 1, message):
                        found.append(headers["id"])
                        return True
            return False

        deadline = time.monotonic() + 60
        while not delete():
            assert night.popen.poll() is None, night.stdout + night.stderr
            assert time.monotonic() < deadline, "no sync ever waited in its queue"
    return found[0]


def filings_of(night: RunningNight) -> list[Filing]:
    books = night.folder / "world.sqlite"
    return read_filings(books) if books.exists() and night.children().keys() >= {"people"} else []


def file_again(night: RunningNight, filing: Filing) -> str:
    """File under another key what was filed already, as a careless program would; return the gateway's id."""
    [ready] = [json.loads(line) for line in (night.folder / "logs" / "world.log").read_text().splitlines()]
    tokens = TokenSource(Credentials.read(night.folder / "application.json"), audience=GATEWAY)
    with FilingClient(ready["url"], tokens) as gateway:
        return gateway.submit("by hand", json.loads(filing.body), job_id=str(filing.job_id)).filing_id


def next_reading(night: RunningNight) -> tuple[str, int]:
    """Wait until a receipt is being read; return its job and the pid of the pool's process that reads it."""
    found: list[tuple[str, int]] = []

    def reads() -> bool:
        for path in (night.folder / "journal").glob("*.jsonl"):
            events = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
            if events and is_reading_for_a_while(events[-1]):
                found.append((events[-1]["job"], int(path.name.partition("-")[0])))
        return bool(found)

    night.until(reads)
    return found[0]


def is_reading_for_a_while(event: dict[str, Any]) -> bool:
    began_before = datetime.now(UTC) - timedelta(seconds=0.3)
    is_reading = event["event"] == journal.STARTED and event["task"] == READING
    return is_reading and datetime.fromisoformat(event["at"]) < began_before

"""The world as a process: how it begins, and how it ends."""

import json
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import httpx2
import pytest

from nightshift.world.books import Call, read_calls, read_filings
from nightshift.world.testing import TOKEN, RunningWorld, running_world, world_command

HEADERS = {"Authorization": f"Bearer {TOKEN}"}
SLOW = {"--aggregator-median-s": "300", "--aggregator-sigma": "0", "--gateway-median-s": "300"}
DEADLINE_S = 20
DETAILS = f"/accounts/{UUID(int=1)}/details"


def limited(command: list[str], blocks: int) -> list[str]:
    """Let the command run where no file can grow beyond some blocks (of half a kilobyte, or a whole one)."""
    return ["sh", "-c", f'ulimit -f {blocks} && exec "$@"', "sh", *command]


def run_to_end(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def assert_one_line_and_exit_code_2(ended: subprocess.CompletedProcess[str], *words: str) -> None:
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert len(ended.stderr.splitlines()) == 1
    for word in words:
        assert word in ended.stderr


def ask_in_background(world: RunningWorld, path: str, *, method: str = "GET") -> threading.Thread:
    def ask() -> None:
        headers = {**HEADERS, "Idempotency-Key": "key"}
        with httpx2.Client(base_url=world.url, headers=headers, timeout=60, trust_env=False) as http:
            try:
                http.request(method, path, json={} if method == "POST" else None)
            except httpx2.TransportError:
                return  # the world was ended in the middle: that is what the test does

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


def wait_for(books: Path, condition: Callable[[list[Call]], bool]) -> list[Call]:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        if condition(calls := read_calls(books)):
            return calls
        time.sleep(0.02)
    raise AssertionError(f"the books never came to it: {read_calls(books)}")


def all_granted(calls: list[Call]) -> bool:
    return bool(calls) and all(call.granted_at for call in calls)


def test_a_taken_port_ends_in_one_line(books: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run_to_end(world_command(books, {"--port": str(port)}))
    assert_one_line_and_exit_code_2(ended, str(port), "--port")
    assert not books.exists()


def test_a_folder_that_is_not_there_ends_in_one_line(tmp_path: Path) -> None:
    ended = run_to_end(world_command(tmp_path / "missing" / "books.sqlite", {}))
    assert_one_line_and_exit_code_2(ended, "missing", "--books")


def test_a_full_disk_at_the_start_ends_in_one_line(books: Path) -> None:
    assert_one_line_and_exit_code_2(run_to_end(limited(world_command(books, {}), blocks=8)), "books.sqlite", "--books")


def test_options_that_do_not_fit_together_end_in_one_line(books: Path) -> None:
    ended = run_to_end(world_command(books, {"--throttled-ratio": "0.8", "--failed-ratio": "0.8"}))
    assert_one_line_and_exit_code_2(ended, "ratio")
    assert_one_line_and_exit_code_2(run_to_end(world_command(books, {"--fd": "3"})), "either --port or --fd")


def test_a_disk_that_fills_up_stops_the_world_with_one_line(books: Path) -> None:
    process = subprocess.Popen(
        limited(world_command(books, {}), blocks=400),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        statuses = ask_until_it_ends(url)
        _, stderr = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 2
    assert len(stderr.splitlines()) == 1
    assert "cannot write the world's books" in stderr
    told = [call.status for call in read_calls(books) if call.status is not None]
    assert told == statuses  # whatever a caller was told is in the books


def ask_until_it_ends(url: str) -> list[int]:
    statuses: list[int] = []
    with httpx2.Client(base_url=url, headers=HEADERS, timeout=10, trust_env=False) as http:
        while len(statuses) < 5000:
            try:
                status = http.get(DETAILS).status_code
            except httpx2.TransportError:
                break
            if status == 503:
                break
            statuses.append(status)
    return statuses


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly_and_leaves_its_calls_open(books: Path, number: signal.Signals) -> None:
    with running_world(books, SLOW) as world:
        asking = ask_in_background(world, DETAILS)
        wait_for(books, all_granted)
        world.process.send_signal(number)
        assert world.process.wait(timeout=DEADLINE_S) == 0
        asking.join(timeout=DEADLINE_S)
    (call,) = read_calls(books)
    assert (call.answered_at, call.status, call.latency_s) == (None, None, 300)


def test_kill_9_in_the_middle_of_calls_leaves_readable_books(books: Path) -> None:
    with running_world(books, SLOW) as world:
        asking = [ask_in_background(world, f"/accounts/{UUID(int=n)}/balances") for n in range(5)]
        wait_for(books, lambda calls: len(calls) == 5 and all_granted(calls))
        world.process.kill()
        world.process.wait(timeout=DEADLINE_S)
        for thread in asking:
            thread.join(timeout=DEADLINE_S)
    calls = read_calls(books)
    assert len(calls) == 5
    assert all(call.answered_at is None and call.latency_s == 300 for call in calls)
    with running_world(books) as world:
        assert httpx2.get(world.url + DETAILS, headers=HEADERS, trust_env=False).status_code == 200


def test_a_filing_that_took_effect_before_kill_9_is_known_to_the_next_world(books: Path) -> None:
    with running_world(books, {"--gateway-median-s": "1"}) as world:
        asking = ask_in_background(world, "/filings", method="POST")
        deadline = time.monotonic() + DEADLINE_S
        while not read_filings(books) and time.monotonic() < deadline:
            time.sleep(0.01)
        world.process.kill()
        asking.join(timeout=DEADLINE_S)
    (filing,) = read_filings(books)
    with running_world(books) as world:
        found = httpx2.get(world.url + "/filings?idempotency_key=key", headers=HEADERS, trust_env=False)
    assert found.json()["filing_id"] == filing.filing_id


def test_a_call_whose_caller_leaves_stays_open(books: Path) -> None:
    with running_world(books, {"--aggregator-median-s": "0.5", "--aggregator-sigma": "0"}) as world:
        impatient = httpx2.Timeout(20, read=0.1)
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.get(world.url + DETAILS, headers=HEADERS, timeout=impatient, trust_env=False)
        later = httpx2.get(world.url + DETAILS, headers=HEADERS, timeout=20, trust_env=False)
        calls = read_calls(books)
    assert later.status_code == 200
    assert [call.status for call in calls] == [None, 200]


def test_an_inherited_socket_is_served(books: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        command = world_command(books, {"--fd": str(listener.fileno())})
        at = command.index("--port")
        process = subprocess.Popen(
            command[:at] + command[at + 2 :],
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=[listener.fileno()],
        )
        with process:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline()) == {"ready": True, "url": f"http://127.0.0.1:{port}"}
            assert httpx2.get(f"http://127.0.0.1:{port}{DETAILS}", headers=HEADERS).status_code == 200
            process.terminate()
            assert process.wait(timeout=DEADLINE_S) == 0

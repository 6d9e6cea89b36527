"""Two worlds of one seed answer alike, whatever the order of the calls."""

import datetime as dt
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2

from nightshift.world.books import Call, read_calls
from nightshift.world.testing import TOKEN, running_world

FAULTY = {"--throttled-ratio": "0.1", "--failed-ratio": "0.1"}
PATHS = ("details", "balances", "transactions?date_from=2026-11-20")
QUESTIONS = [f"/accounts/{UUID(int=number)}/{path}" for number in range(8) for path in PATHS]


def ask_all(books: Path, questions: Sequence[str], *, threads: int) -> tuple[dict[str, list[Any]], list[Call]]:
    """Ask every question twice over; the second round may overlap other questions' first."""
    answers: dict[str, list[Any]] = {}
    with (
        running_world(books, FAULTY) as world,
        httpx2.Client(base_url=world.url, headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False) as http,
        ThreadPoolExecutor(threads) as pool,
    ):

        def ask(question: str) -> tuple[str, list[Any]]:
            both = [http.get(question) for _ in range(2)]
            return question, [(answer.status_code, answer.json()) for answer in both]

        answers.update(pool.map(ask, questions))
        return answers, read_calls(books)


def drawn(calls: list[Call]) -> dict[Any, Any]:
    return {(call.kind, call.subject, call.ask): (call.latency_s, call.fault, call.status) for call in calls}


def test_the_order_of_calls_changes_neither_answers_nor_latencies_nor_faults(tmp_path: Path) -> None:
    shuffled = random.Random(3).sample(QUESTIONS, len(QUESTIONS))
    answers, calls = ask_all(tmp_path / "one.sqlite", QUESTIONS, threads=1)
    other_answers, other_calls = ask_all(tmp_path / "two.sqlite", shuffled, threads=8)
    assert other_answers == answers
    assert drawn(other_calls) == drawn(calls)
    assert {status for both in answers.values() for status, _ in both} >= {200, 429}
    assert any(status >= 500 for both in answers.values() for status, _ in both)


def test_a_world_that_is_started_again_goes_on_where_its_books_end(tmp_path: Path) -> None:
    books = tmp_path / "books.sqlite"
    ask_all(books, QUESTIONS[:3], threads=1)
    _, calls = ask_all(books, QUESTIONS[:3], threads=1)
    assert sorted(call.ask for call in calls if call.kind == "details" and call.ask is not None) == [
        0,
        1,
        2,
        3,
    ]
    assert [call.call_id for call in calls] == list(range(1, 13))


def test_the_drawn_latency_has_passed_before_the_answer(tmp_path: Path) -> None:
    _, calls = ask_all(tmp_path / "books.sqlite", QUESTIONS, threads=8)
    for call in calls:
        assert call.answered_at is not None
        assert call.granted_at is not None
        assert call.latency_s is not None
        waited = call.answered_at - call.granted_at
        assert waited >= dt.timedelta(seconds=call.latency_s) - dt.timedelta(microseconds=2)

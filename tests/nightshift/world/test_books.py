"""The books: written in order, readable at any time, refused where they cannot be kept."""

import asyncio
import datetime as dt
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nightshift.world.bookkeeper import Bookkeeper, stamp
from nightshift.world.books import BooksError, Filing, read_calls, read_filings
from nightshift.world.kinds import Fault, PathKind

NOW = dt.datetime(2026, 11, 30, 0, 30, 0, 125, tzinfo=dt.UTC)
ARRIVAL = {"method": "GET", "kind": "balances", "subject": "account", "query": "", "job_id": "job-1"}
FILING = Filing(filing_id="F1", idempotency_key="key", body="{}", received_at=NOW, call_id=1, job_id=None)


def test_a_call_is_open_until_it_is_answered(books: Path) -> None:
    with closing(Bookkeeper(books, seed=7)) as keeper:
        keeper.open_call(1, received_at=NOW, facts=ARRIVAL)
        keeper.amend_call(1, {"granted_at": stamp(NOW), "ask": 0, "latency_s": 2.5}).result(timeout=10)
        (opened,) = read_calls(books)
        facts = {"answered_at": stamp(NOW), "status": 503, "fault": Fault.SCRIPTED_5XX}
        keeper.amend_call(1, facts).result(timeout=10)
        (answered,) = read_calls(books)
    assert (opened.answered_at, opened.status, opened.latency_s, opened.granted_at) == (None, None, 2.5, NOW)
    assert (answered.answered_at, answered.status, answered.fault) == (NOW, 503, Fault.SCRIPTED_5XX)
    assert (answered.kind, answered.job_id, answered.replayed) == (PathKind.BALANCES, "job-1", False)


def test_what_was_given_before_the_end_is_written(books: Path) -> None:
    with closing(Bookkeeper(books, seed=7)) as keeper:
        for call_id in range(1, 2001):
            keeper.open_call(call_id, received_at=NOW, facts=ARRIVAL)
    assert [call.call_id for call in read_calls(books)] == list(range(1, 2001))


def test_the_books_remember_what_a_restarted_world_must_know(books: Path) -> None:
    with closing(Bookkeeper(books, seed=7)) as keeper:
        keeper.open_call(1, received_at=NOW, facts=ARRIVAL)
        keeper.amend_call(1, {"granted_at": stamp(NOW), "ask": 0})
        keeper.open_call(2, received_at=NOW, facts=ARRIVAL)
        asyncio.run(keeper.add_filing(FILING))
    with closing(Bookkeeper(books, seed=7)) as keeper:
        memory = keeper.memory
    assert memory.next_call_id == 3
    assert memory.asks == {(PathKind.BALANCES, "account"): 1}
    assert memory.filings == {"key": FILING}
    assert read_filings(books) == [FILING]


def test_books_of_another_seed_are_refused(books: Path) -> None:
    Bookkeeper(books, seed=7).close()
    with pytest.raises(BooksError, match="belong to seed 7, not 8"):
        Bookkeeper(books, seed=8)


def test_a_second_writer_is_refused(books: Path) -> None:
    with closing(Bookkeeper(books, seed=7)), pytest.raises(BooksError, match="another world"):
        Bookkeeper(books, seed=7)
    Bookkeeper(books, seed=7).close()


def test_a_file_that_is_no_database_is_refused_and_left_alone(books: Path) -> None:
    books.write_text("a letter of some length, which is no database at all\n" * 40, encoding="utf-8")
    before = books.read_bytes()
    with pytest.raises(BooksError, match="name another file"):
        Bookkeeper(books, seed=7)
    with pytest.raises(BooksError, match="cannot read"):
        read_calls(books)
    assert books.read_bytes() == before


def test_reading_books_that_are_not_there_makes_none(books: Path) -> None:
    with pytest.raises(BooksError, match=r"books\.sqlite"):
        read_filings(books)
    assert not books.exists()


def test_a_write_that_fails_stops_the_books_and_tells(books: Path) -> None:
    told: list[str] = []
    with closing(Bookkeeper(books, seed=7)) as keeper:
        keeper.on_failure = lambda: told.append("stopped")
        keeper.open_call(1, received_at=NOW, facts=ARRIVAL)
        keeper.open_call(1, received_at=NOW, facts=ARRIVAL)  # the same number twice
        with pytest.raises(BooksError, match="UNIQUE"):
            keeper.amend_call(1, {"status": 200}).result(timeout=10)
        assert keeper.failure is not None
        with pytest.raises(BooksError):
            asyncio.run(keeper.add_filing(FILING))
    assert told == ["stopped"]
    assert read_filings(books) == []


def test_a_caller_that_gives_up_waiting_does_not_stop_the_writer(books: Path) -> None:
    with closing(Bookkeeper(books, seed=7)) as keeper, closing(sqlite3.connect(books)) as other:
        other.execute("BEGIN IMMEDIATE")  # the writer has to wait
        keeper.open_call(1, received_at=NOW, facts=ARRIVAL)
        waiting = keeper.amend_call(1, {"status": 200})
        assert waiting.cancel()
        other.rollback()
        keeper.amend_call(1, {"ask": 3}).result(timeout=10)
        (call,) = read_calls(books)
    assert (call.status, call.ask) == (200, 3)


def test_an_unknown_fact_is_refused(books: Path) -> None:
    with closing(Bookkeeper(books, seed=7)) as keeper, pytest.raises(ValueError, match="colour"):
        keeper.amend_call(1, {"colour": "red"})

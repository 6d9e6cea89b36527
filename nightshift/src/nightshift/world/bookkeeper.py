"""The hand that writes the books: one thread, committing in batches; the event loop never waits on disk."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import fcntl
import queue
import sqlite3
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from nightshift.world.books import SCHEMA, BooksError, Filing, filing_from_row
from nightshift.world.consents import Consent
from nightshift.world.kinds import PathKind

_BATCH_LIMIT = 500
_CALL_COLUMNS = frozenset(
    {"answered_at", "granted_at", "ask", "latency_s", "fault", "status", "retry_after_s", "replayed", "outcome"}
)


@dataclass(frozen=True)
class _Write:
    statement: str
    values: tuple[object, ...]
    committed: Future[None]


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What a world that is started again on its old books must know.

    Attributes:
        next_call_id: First free call number.
        asks: Calls let in so far by (endpoint, subject).
        filings: Accepted filings by idempotency key.
        consents: Consents by their id, in the order in which they were asked for.
    """

    next_call_id: int
    asks: dict[tuple[PathKind, str], int]
    filings: dict[str, Filing]
    consents: dict[str, Consent]


def stamp(instant: dt.datetime) -> str:
    """Write an aware instant as the books do: ISO 8601, UTC, microseconds."""
    return instant.astimezone(dt.UTC).isoformat(timespec="microseconds")


class Bookkeeper:
    """Writer of the world's books. Writes are committed in the order in which they were given.

    A commit survives the death of this process at any moment; of the machine, only up to the last checkpoint.
    """

    def __init__(self, path: Path, *, seed: int) -> None:
        """Open or create the books, and prove that they can be written.

        Args:
            path: The SQLite file.
            seed: The world's seed; books of another seed are refused.

        Raises:
            BooksError: The file cannot be written, holds something else, or belongs to another seed.
        """
        self.path = path
        self.failure: BooksError | None = None
        self.on_failure: Callable[[], None] = lambda: None
        self._writes: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._lock = _lock(path)
        try:
            self._connection, self.memory = _open(path, seed)
        except BooksError:
            self._lock.close()
            raise
        self._thread = threading.Thread(target=self._write_all, name="bookkeeper", daemon=True)
        self._thread.start()

    def open_call(self, call_id: int, *, received_at: dt.datetime, facts: Mapping[str, object]) -> None:
        """Write the row of a call that arrived. Returns at once."""
        columns = {"call_id": call_id, "received_at": stamp(received_at), **facts}
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        # Only names of columns are put into the text: ours, never the caller's.
        self._put(f"INSERT INTO calls ({names}) VALUES ({marks})", tuple(columns.values()))  # noqa: S608

    def amend_call(self, call_id: int, facts: Mapping[str, object]) -> Future[None]:
        """Add facts to the row of a call; the result is there when they are committed."""
        if unknown := facts.keys() - _CALL_COLUMNS:
            raise ValueError(f"a call has no {', '.join(sorted(unknown))}")
        sets = ", ".join(f"{name} = ?" for name in facts)
        return self._put(f"UPDATE calls SET {sets} WHERE call_id = ?", (*facts.values(), call_id))  # noqa: S608

    async def add_filing(self, filing: Filing) -> None:
        """Write a filing; returns when it is committed.

        Raises:
            BooksError: It could not be written.
        """
        await asyncio.wrap_future(
            self._put(
                "INSERT INTO filings VALUES (?, ?, ?, ?, ?, ?)",
                (
                    filing.filing_id,
                    filing.idempotency_key,
                    filing.body,
                    stamp(filing.received_at),
                    filing.call_id,
                    filing.job_id,
                ),
            )
        )

    async def put_consent(self, consent: Consent) -> None:
        """Write a consent as it is now; returns when it is committed.

        Raises:
            BooksError: It could not be written.
        """
        facts = (consent.consent_id, consent.written())
        await asyncio.wrap_future(
            self._put("INSERT INTO consents VALUES (?, ?) ON CONFLICT DO UPDATE SET facts = excluded.facts", facts)
        )

    def close(self) -> None:
        """Commit what is waiting and close the file."""
        self._writes.put(None)
        self._thread.join()
        self._lock.close()

    def _put(self, statement: str, values: tuple[object, ...]) -> Future[None]:
        write = _Write(statement, values, Future())
        self._writes.put(write)
        return write.committed

    def _write_all(self) -> None:
        with contextlib.closing(self._connection):
            while batch := self._next_batch():
                self._commit(batch)

    def _next_batch(self) -> list[_Write]:
        batch: list[_Write] = []
        write = self._writes.get()
        while write is not None:
            batch.append(write)
            if len(batch) == _BATCH_LIMIT or self._writes.empty():
                return batch
            write = self._writes.get()
        if batch:
            self._writes.put(None)  # the end comes after this batch
        return batch

    def _commit(self, batch: list[_Write]) -> None:
        try:
            if self.failure is None:
                with self._connection:
                    for write in batch:
                        self._connection.execute(write.statement, write.values)
        except sqlite3.Error as error:
            self.failure = _unwritable(self.path, error)
            self.on_failure()
        for write in batch:
            _settle(write.committed, self.failure)


def _settle(committed: Future[None], failure: BooksError | None) -> None:
    if not committed.set_running_or_notify_cancel():
        return  # the caller was cut off; the write is in the books all the same
    if failure is None:
        committed.set_result(None)
    else:
        committed.set_exception(failure)


def _lock(path: Path) -> TextIO:
    try:
        lock = path.with_name(f"{path.name}.lock").open("w")
    except OSError as error:
        raise _unwritable(path, error.strerror) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise _unwritable(path, "another world is writing them") from error
    return lock


def _open(path: Path, seed: int) -> tuple[sqlite3.Connection, Memory]:
    try:
        connection = sqlite3.connect(path, check_same_thread=False, timeout=10)
    except sqlite3.Error as error:
        raise _unwritable(path, error) from error
    connection.row_factory = sqlite3.Row
    try:
        # NORMAL in write-ahead mode: no fsync a commit; a killed process loses nothing that was committed.
        connection.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;" + SCHEMA)
        _claim(connection, path, seed=seed)
        return connection, _remember(connection)
    except sqlite3.Error as error:
        connection.close()
        raise _unwritable(path, error) from error
    except BooksError:
        connection.close()
        raise


def _claim(connection: sqlite3.Connection, path: Path, *, seed: int) -> None:
    with connection:
        connection.execute("INSERT OR IGNORE INTO world VALUES ('seed', ?)", (str(seed),))
    found = connection.execute("SELECT value FROM world WHERE name = 'seed'").fetchone()["value"]
    if found != str(seed):
        raise BooksError(
            f"the world's books in {path} belong to seed {found}, not {seed}; name another file with --books"
        )


def _remember(connection: sqlite3.Connection) -> Memory:
    asks = connection.execute(
        "SELECT kind, subject, count(*) AS count FROM calls"
        " WHERE granted_at IS NOT NULL AND subject IS NOT NULL GROUP BY kind, subject"
    )
    filings = [filing_from_row(row) for row in connection.execute("SELECT * FROM filings")]
    consents = [Consent.read(row["facts"]) for row in connection.execute("SELECT facts FROM consents ORDER BY rowid")]
    return Memory(
        next_call_id=connection.execute("SELECT coalesce(max(call_id), 0) + 1 FROM calls").fetchone()[0],
        asks={(PathKind(row["kind"]), row["subject"]): row["count"] for row in asks},
        filings={filing.idempotency_key: filing for filing in filings},
        consents={consent.consent_id: consent for consent in consents},
    )


def _unwritable(path: Path, why: object) -> BooksError:
    return BooksError(f"cannot write the world's books to {path}: {why}; name another file with --books")

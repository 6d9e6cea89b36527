"""The world's books: what every call and every filing was, for whoever judges the night afterwards.

One SQLite file in write-ahead mode. A row of `calls` is written when the call arrives and completed when it
is answered; a call that was cut off stays open (`answered_at` is None). Reading works while the world runs
and after it was killed.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nightshift.world.kinds import Fault, Outcome, PathKind

SCHEMA = """
CREATE TABLE IF NOT EXISTS world (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS calls (
    call_id INTEGER PRIMARY KEY,
    received_at TEXT NOT NULL,
    answered_at TEXT,
    method TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT,
    query TEXT NOT NULL,
    job_id TEXT,
    granted_at TEXT,
    ask INTEGER,
    latency_s REAL,
    fault TEXT,
    status INTEGER,
    retry_after_s REAL,
    replayed INTEGER NOT NULL DEFAULT 0,
    outcome TEXT
);
CREATE TABLE IF NOT EXISTS filings (
    filing_id TEXT PRIMARY KEY,
    idempotency_key TEXT NOT NULL UNIQUE,
    body TEXT NOT NULL,
    received_at TEXT NOT NULL,
    call_id INTEGER NOT NULL,
    job_id TEXT
);
CREATE TABLE IF NOT EXISTS consents (consent_id TEXT PRIMARY KEY, facts TEXT NOT NULL);
"""


class BooksError(Exception):
    """The books cannot be written or read; the sentence says which file, why, and what to do."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call that reached the world. Instants are aware, UTC, to the microsecond.

    Attributes:
        call_id: Number in the order of arrival.
        received_at: Arrival.
        answered_at: Answer; None while it is open, and for ever when it was cut off.
        method: HTTP method.
        kind: What was asked for.
        subject: Account id, or idempotency key; None where the call named none.
        query: Query string as sent.
        job_id: The caller's `X-Job-Id`, or None.
        granted_at: When it was let in (past authentication and the rate limit); None if it was not.
        ask: How often this endpoint had been granted for this subject before; None if it was not let in.
        latency_s: Drawn latency, seconds; None if it was not let in.
        fault: What was wrong with it or its answer, or None.
        status: HTTP status; None while open, and where no answer was sent.
        retry_after_s: `Retry-After` of the answer, seconds, or None.
        replayed: Whether a submission was answered with a filing that existed before.
        outcome: What its caller got; None while it is open, and for ever when the world was killed under it.
    """

    call_id: int
    received_at: dt.datetime
    answered_at: dt.datetime | None
    method: str
    kind: PathKind
    subject: str | None
    query: str
    job_id: str | None
    granted_at: dt.datetime | None
    ask: int | None
    latency_s: float | None
    fault: Fault | None
    status: int | None
    retry_after_s: float | None
    replayed: bool
    outcome: Outcome | None = None

    @property
    def succeeded(self) -> bool:
        """Tell whether its caller got what it asked for: status 200, and the whole body."""
        return self.status == 200 and self.outcome in (None, Outcome.ANSWERED)


@dataclass(frozen=True, kw_only=True)
class Filing:
    """One filing that the gateway accepted.

    Attributes:
        filing_id: The gateway's id.
        idempotency_key: Key that it was submitted with; unique.
        body: What was filed, as canonical JSON.
        received_at: When it took effect (aware, UTC).
        call_id: The call that made it.
        job_id: `X-Job-Id` of that call, or None.
    """

    filing_id: str
    idempotency_key: str
    body: str
    received_at: dt.datetime
    call_id: int
    job_id: str | None


def read_calls(path: Path) -> list[Call]:
    """Read all calls, in the order of arrival.

    Raises:
        BooksError: The file is not there or holds no books.
    """
    return [_call(row) for row in _rows(path, "SELECT * FROM calls ORDER BY call_id")]


def read_filings(path: Path) -> list[Filing]:
    """Read all accepted filings, in the order in which they took effect.

    Raises:
        BooksError: The file is not there or holds no books.
    """
    return [filing_from_row(row) for row in _rows(path, "SELECT * FROM filings ORDER BY received_at, filing_id")]


def filing_from_row(row: sqlite3.Row) -> Filing:
    """Make a filing of a whole row of `filings`."""
    facts: dict[str, Any] = dict(row)
    return Filing(**{**facts, "received_at": dt.datetime.fromisoformat(row["received_at"])})


def _rows(path: Path, query: str) -> list[sqlite3.Row]:
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10)) as books:
            books.row_factory = sqlite3.Row
            return books.execute(query).fetchall()
    except sqlite3.Error as error:
        raise BooksError(f"cannot read the world's books in {path}: {error}; give the world's --books") from error


def _call(row: sqlite3.Row) -> Call:
    facts: dict[str, Any] = dict(row)
    facts.update(
        received_at=dt.datetime.fromisoformat(row["received_at"]),
        answered_at=_instant(row["answered_at"]),
        granted_at=_instant(row["granted_at"]),
        kind=PathKind(row["kind"]),
        fault=None if row["fault"] is None else Fault(row["fault"]),
        replayed=bool(row["replayed"]),
        outcome=None if row["outcome"] is None else Outcome(row["outcome"]),
    )
    return Call(**facts)


def _instant(text: str | None) -> dt.datetime | None:
    return None if text is None else dt.datetime.fromisoformat(text)

"""A finished night as frozen values: all that the morning report knows.

Instants are aware. Those of the calendar clock (scaled) say so; all others are of the run clock (real time).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from zoneinfo import ZoneInfo

from nightshift.books.morning import MorningCounts
from nightshift.chaos.strike import Struck
from nightshift.documents.accuracy import Rates
from nightshift.world.books import Call, Filing
from nightshift.world.limiter import RateLimit
from slackwater import JobState, Lane, LaneReading, Occurrence, Tempo


class DemandSource(StrEnum):
    """Who asked for a job."""

    PUBLISH = "publish"
    """A producer, and the broker confirmed it."""
    SCRIPT = "script"
    """The world's script: a person's click."""


@dataclass(frozen=True, kw_only=True)
class Demand:
    """A job that must be somewhere in the morning. One id may be demanded more than once.

    Attributes:
        job: Its id.
        task: Name of its task.
        lane: Lane that it was published to; None for a queue that is no lane.
        source: Who asked for it.
        at: When.
        elastic: It may be held.
        parent: Id of the job that fanned it out, or None.
    """

    job: str
    task: str
    lane: str | None
    source: DemandSource
    at: datetime
    elastic: bool = False
    parent: str | None = None


class Claimant(StrEnum):
    """Who says where a job is."""

    ENDINGS = "store: endings"
    HOLDS = "store: holds"
    DEAD_LETTERS = "store: dead letters"
    RESULTS = "result backend"
    UNACKNOWLEDGED = "broker: unacknowledged"
    QUEUE = "broker: queue"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One statement about where a job is; a job may have several.

    Attributes:
        job: Its id.
        state: What the claimant says of it.
        claimant: Who says so.
        detail: More of it, for people: the queue's name, an error's first line.
        of: The job that does or did the work of one that is a duplicate; None for none.
    """

    job: str
    state: JobState
    claimant: Claimant
    detail: str = ""
    of: str | None = None


@dataclass(frozen=True, kw_only=True)
class Letter:
    """A dead letter: a job that nobody runs again by itself.

    Attributes:
        job: Its id.
        task: Name of its task.
        state: Dead (its attempts are spent) or failed.
        cause: What it is grouped by: the error's kind, or `poison`.
        reason: One sentence.
        tries: Tries that were begun.
        attempts: Started deliveries of its last try.
    """

    job: str
    task: str
    state: JobState
    cause: str
    reason: str
    tries: int
    attempts: int


@dataclass(frozen=True, kw_only=True)
class Restart:
    """A job whose body was started more than once in one try: it was cut off before it came to an end.

    Attributes:
        job: Its id.
        task: Name of its task.
        starts: Started deliveries of its last try.
        is_childs: It ran in a child process of its worker (a prefork pool).
    """

    job: str
    task: str
    starts: int
    is_childs: bool


@dataclass(frozen=True, kw_only=True)
class Sweeping:
    """What a sweeper did.

    Attributes:
        sweeper: Its name.
        at: When its last round was.
        found_count: Things found stuck in its last round.
        recovered_count: Things recovered in its last round.
        note: Its own sentence on that round, or empty.
        error: Why that round failed; empty where it did not.
        rescued: What it recovered all night long, where it writes that down itself.
    """

    sweeper: str
    at: datetime
    found_count: int = 0
    recovered_count: int = 0
    note: str = ""
    error: str = ""
    rescued: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Run:
    """One started body, from a worker's own log.

    Attributes:
        job: Id of its job.
        task: Name of its task.
        lane: Lane that it ran in; None for a queue that is no lane.
        worker: Node name of the worker process.
        published_at: Publish stamp of the message, where it had one.
        started_at: When the body started.
        ended_at: When it ended; None while it runs, and for ever when it was cut off.
        outcome: How it ended, in the worker's word; empty while it runs.
        elastic: It could have been held.
        start_by: Last instant (calendar clock) at which it might start for the first time; None for none.
        tried_again_for: Kind of the error for which it is tried again; empty for a body that is not.
    """

    job: str
    task: str
    lane: str | None
    worker: str
    started_at: datetime
    published_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: str = ""
    elastic: bool = False
    start_by: datetime | None = None
    tried_again_for: str = ""


@dataclass(frozen=True, kw_only=True)
class Click:
    """A person's click on "submit", and the wait that followed.

    Attributes:
        job: Id of the job that it demanded.
        run_id: The agent run to be filed.
        tenant: Whose it is.
        clicked_at: When.
        answered_at: When the person saw the answer; None where none came.
    """

    job: str
    run_id: int
    tenant: str
    clicked_at: datetime
    answered_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class OwnFiling:
    """A filing as our own books have it: the run, the idempotency key, the gateway's id."""

    run_id: int
    key: str
    filing_id: str


@dataclass(frozen=True, kw_only=True)
class ProcessUse:
    """What one process took: its peak resident memory in bytes, its processor time in seconds."""

    name: str
    peak_rss_bytes: int
    cpu_s: float


@dataclass(frozen=True, kw_only=True)
class Night:
    """Everything that is known of a finished night.

    Attributes:
        plan: Name of the schedule's plan.
        seed: Seed of the night.
        minutes: How long it took, in minutes of real time.
        tempo: How its calendar ran.
        starts_at: First instant (calendar clock).
        ends_at: Last instant (calendar clock).
        zone: Zone in which people read times.
        lanes: The lanes, in the order of the picture.
        occurrences: All recorded occurrences.
        due: Entry and due instant (calendar clock) of each occurrence that should have been recorded.
        readings: All readings, in any order.
        demands: All demanded jobs.
        claims: All statements about where jobs are.
        runs: All started bodies.
        clicks: All clicks.
        calls: All calls in the world's books.
        filings: All filings in the world's books.
        own_filings: All filings in our books.
        rate_limit: The aggregator's rate limit.
        books: The night's effects, counted in our books.
        accuracy: Receipts read against the truth; None where none was read.
        expired_reasons: Expired jobs by reason.
        processes: What each process took; empty where nobody measured.
        letters: Dead letters of demanded jobs.
        restarts: Demanded jobs that were started again within one try.
        sweepings: What the sweepers did, by name.
        chaos: Strikes that were made, by moment; empty for a night without chaos.
    """

    plan: str
    seed: int
    minutes: float
    tempo: Tempo
    starts_at: datetime
    ends_at: datetime
    zone: ZoneInfo
    lanes: Sequence[Lane]
    occurrences: Sequence[Occurrence]
    due: Sequence[tuple[str, datetime]]
    readings: Sequence[LaneReading]
    demands: Sequence[Demand]
    claims: Sequence[Claim]
    runs: Sequence[Run]
    clicks: Sequence[Click]
    calls: Sequence[Call]
    filings: Sequence[Filing]
    own_filings: Sequence[OwnFiling]
    rate_limit: RateLimit
    books: MorningCounts
    accuracy: Rates | None = None
    expired_reasons: Mapping[str, int] = field(default_factory=dict)
    processes: Sequence[ProcessUse] = ()
    letters: Sequence[Letter] = ()
    restarts: Sequence[Restart] = ()
    sweepings: Sequence[Sweeping] = ()
    chaos: Sequence[Struck] = ()

"""Who may start: runs, keys and leases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

from slackwater.core.admission import Admission, Ask, Key, KeyRule, Lease, Run
from slackwater.core.job import JobState
from slackwater.core.under_way import Offer, Start, UnderWay


@dataclass(frozen=True, kw_only=True)
class Begun:
    """What became of one delivery that asked to start.

    Attributes:
        admission: The decision, which is written already.
        fence: Fencing token of the lease that it took; None where it took none.
    """

    admission: Admission
    fence: int | None = None


@dataclass(frozen=True, kw_only=True)
class Finish:
    """How a body ended, of a job that had asked to start.

    Attributes:
        job: Its id.
        tries: Which try it was.
        state: A final state; or queued or held, where it comes again.
        key: Its key; None for none.
        lease: Its lease; None for none.
        fence: The fence under which it ran; None where it ran under none.
        digest: SHA-256 of the result's JSON; None for none.
        ended_at: When it ended, of the calendar clock: what `fresh_for` is measured by.
        handed_back: Its delivery goes back through no fault of its own; the next start of it is no new attempt.
    """

    job: str
    tries: int
    state: JobState
    ended_at: datetime
    key: str | None = None
    lease: str | None = None
    fence: int | None = None
    digest: str | None = None
    handed_back: bool = False


@dataclass(frozen=True, kw_only=True)
class Announcement:
    """A job with a key that is about to be published.

    Attributes:
        job: Its id.
        task: Its task's name.
        key: Its key.
    """

    job: str
    task: str
    key: KeyRule


class RunStore(Protocol):
    """Runs, keys and leases: who may start, who has which key, who holds which lease.

    A lease lapses by the store's own clock. After a time in which nobody refreshed anything (the store was away, or
    all were) each lease lives one time-to-live longer: amnesty. All acts commit synchronously; each takes many at
    once, in one transaction, and treats each item as if it came alone, in the order given.
    """

    def begin(self, asks: Sequence[Ask]) -> Sequence[Begun]:
        """Decide for each delivery with `core.admission.admit`, and write what was decided.

        A run of a job is written as running with its attempt; a key and a lease become the job's. A key that is
        taken records the lease under which its job runs.
        """
        ...

    def finish(self, finishes: Sequence[Finish]) -> None:
        """Record how bodies ended, and free their leases.

        The key is changed only while it is the job's own, the lease only under its own fence: a holder that was
        replaced changes nothing of its successor's. A job whose state is queued or held keeps its key. An earlier try
        ends nothing of a later one; but the end of the holder ends its job though a later try of it waits.
        """
        ...

    def announce(self, announcements: Sequence[Announcement], *, at: datetime, stale_before: datetime) -> Sequence[str]:
        """Claim keys at dispatch with `core.admission.announce`.

        Returns:
            For each announcement, the job that has the key now: its own, or the one that does or did the work.
        """
        ...

    def hand_back(self, jobs: Sequence[tuple[str, int]], *, boot: UUID | None = None) -> None:
        """Record that deliveries (job and try) go back to their queues at a shutdown, and free their leases.

        The next start of each is no new attempt. Jobs without a run get one.

        Args:
            jobs: Which.
            boot: The worker process that hands them back: what another has by now of the same jobs is left alone;
                None where that cannot be.
        """
        ...

    def renew(self, boot: UUID, jobs: Sequence[str], *, lives_for: timedelta) -> None:
        """Renew the leases of a worker's bodies, in one statement however many they are; without any, be noted alive.

        A lease whose row is locked by a transaction that checks its fence is left out: it cannot be taken meanwhile.
        """
        ...

    def lapse(self, boot: UUID, jobs: Sequence[str], *, lost_for: timedelta = timedelta(0)) -> None:
        """End the leases of a worker's bodies that have died without an end.

        One whose row is locked by a transaction that checks its fence is left out, and lapses by itself.

        Args:
            boot: The worker process.
            jobs: Whose bodies have died.
            lost_for: How long ago; what the same job has taken since is left alone.
        """
        ...

    def lapse_all(self, boot: UUID) -> None:
        """End all leases of a worker process that is dead, but for those that `lapse` would leave out."""
        ...

    def keep(self, boot: UUID, offers: Sequence[Offer]) -> frozenset[Start]:
        """Keep jobs whose bodies run under a lease, each until its end is told.

        Left out is a job whose run does not say running with this try, whose lease is not its own under this worker
        process (so neither what has ended nor what another has by now), or whose run changes at this moment. A message
        that cannot be written is left away, and the rest is kept.

        Args:
            boot: The worker process in which they run.
            offers: Which; of a job offered twice one is kept.

        Returns:
            The starts that are kept from now on.
        """
        ...

    def check_fence(self, connection: Any, *, lease: str, fence: int) -> None:
        """Make sure, inside a caller's own transaction, that a lease is still held under a fence.

        The lease stays locked for share until that transaction ends, so nobody can take it before the commit.

        Args:
            connection: The caller's, on the store's own database: a session or connection of SQLAlchemy's, or a
                connection or cursor of Django's or psycopg's.
            lease: The lease's name.
            fence: The fencing token under which the body runs.

        Raises:
            StaleFence: The lease is another's by now, or nobody's.
            ConfigurationError: The connection is in no transaction, or to another database.
        """
        ...

    def runs(self, jobs: Iterable[str]) -> Mapping[str, Run]:
        """Return the runs of those jobs that have one."""
        ...

    def leaseless(self, *, limit: int) -> Sequence[Start]:
        """Return the starts under way whose lease has ended, by job, at most `limit`.

        Their runs say running, and no live lease is theirs, by the store's own clock and its amnesty.
        """
        ...

    def under_way(self, jobs: Iterable[str]) -> Mapping[str, UnderWay]:
        """Return what is kept of jobs that are under way: whose runs say running, with the start that is kept."""
        ...

    def key(self, name: str) -> Key | None:
        """Return what is known of a key."""
        ...

    def lease(self, name: str) -> Lease | None:
        """Return who holds a lease; None where it is free."""
        ...

    def now(self) -> datetime:
        """Return the store's own clock, in UTC: the one that all processes share."""
        ...

    def prune(self, *, before: datetime) -> int:
        """Delete ended runs, ended keys and lapsed leases that changed last before an instant; return how many.

        What is kept of jobs that are not under way any more goes too, whatever its age.
        """
        ...

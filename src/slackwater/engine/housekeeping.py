"""Built-in sweepers over the store: late holds, occurrences that cannot come to an end, retention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog

from slackwater.core.job import JobState
from slackwater.core.message import Held
from slackwater.core.occurrence import Occurrence, OccurrenceState
from slackwater.core.sweep import Sweep
from slackwater.ports import Clock, Results, Store

log = structlog.get_logger("slackwater.sweepers")
BATCH = 500
NAMED = 5
"""How many missing jobs a reason names."""


@dataclass(frozen=True, kw_only=True)
class LateHolds:
    """Ends held jobs that cannot start any more: their `start_by` has passed."""

    store: Store
    clock: Clock
    expire: Callable[[Held], None]

    def sweep(self) -> Sweep:
        """Do one round; the end is told before the row goes."""
        late = self.store.holds.late(now=self.clock.calendar(), limit=BATCH)
        for held in late:
            self.expire(held)
        self.store.holds.drop([held.job for held in late])
        return Sweep(sweeper="late holds", at=self.clock.run(), found_count=len(late), recovered_count=len(late))


@dataclass(frozen=True, kw_only=True)
class StuckOccurrences:
    """Closes occurrences that cannot come to an end: jobs of theirs had not started by `start_by`, and did not end.

    Those jobs are not called expired: nobody saw them end, and who looks for them by id shall find them missing.
    """

    store: Store
    results: Results
    clock: Clock
    grace: timedelta
    """How long after `start_by` (calendar clock) the last endings may still be told."""

    def sweep(self) -> Sweep:
        """Do one round."""
        overdue = [one for one in self.store.occurrences.open() if one.start_by + self.grace < self.clock.calendar()]
        closed = sum(self._close(one) for one in overdue)
        return Sweep(sweeper="stuck occurrences", at=self.clock.run(), found_count=closed, recovered_count=closed)

    def _close(self, one: Occurrence) -> bool:
        job = str(one.id)
        parent = self.results.states([job]).get(job)
        if parent is None or parent is JobState.QUEUED:
            return self._advance(one, f"its job {job} had not started by start_by, and nobody has ended it")
        if not parent.final:
            return False
        missing, runs = self._missing(one)
        if runs or not missing:
            return False
        named = ", ".join(missing[:NAMED]) + (f" and {len(missing) - NAMED} more" if len(missing) > NAMED else "")
        return self._advance(one, f"{len(missing)} jobs of its fan-out had not started by start_by: {named}")

    def _missing(self, one: Occurrence) -> tuple[list[str], bool]:
        """Return the jobs that nobody knows of, and whether others still run or wait in the store."""
        missing: list[str] = []
        after = ""
        while jobs := self.store.fan_outs.unsettled(one.id, after=after, limit=BATCH):
            known = self.results.states(jobs)
            if any(known.get(job) in (JobState.RUNNING, JobState.HELD) for job in jobs):
                return [], True
            missing += [job for job in jobs if known.get(job) in (None, JobState.QUEUED)]
            after = jobs[-1]
        return missing, False

    def _advance(self, one: Occurrence, reason: str) -> bool:
        log.error("occurrence cannot come to an end", entry=one.entry, occurrence=str(one.id), reason=reason)
        return self.store.occurrences.advance(one.id, to=OccurrenceState.FAILED, at=self.clock.run(), reason=reason)


@dataclass(frozen=True, kw_only=True)
class Retention:
    """Deletes what is too old to be asked for: runs, keys, free leases, dead letters, groups and chords."""

    store: Store
    clock: Clock
    keys_kept_for: timedelta
    letters_kept_for: timedelta

    def sweep(self) -> Sweep:
        """Do one round."""
        now = self.clock.run()
        counts: Sequence[int] = (
            self.store.runs.prune(before=now - self.keys_kept_for),
            self.store.dead_letters.prune(before=now - self.letters_kept_for),
            self.store.bundles.prune(before=now - self.letters_kept_for),
        )
        return Sweep(
            sweeper="retention",
            at=now,
            note=f"{counts[0]} runs, keys and leases, {counts[1]} dead letters, {counts[2]} groups and chords deleted",
        )

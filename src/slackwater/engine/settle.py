"""Settling: what open occurrences have come to, by id."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from slackwater.core.job import JobState
from slackwater.core.occurrence import Occurrence, OccurrenceState, judge
from slackwater.ports import Clock, FanOutStore, OccurrenceStore, Results

log = structlog.get_logger("slackwater.schedule")
BATCH = 1000


@dataclass(frozen=True, kw_only=True)
class Settler:
    """Asks the result backend for the jobs of open occurrences, in batches, and closes those that are terminal."""

    occurrences: OccurrenceStore
    fan_outs: FanOutStore
    results: Results
    clock: Clock

    def settle(self) -> int:
        """Look at every published occurrence that is open.

        Returns:
            How many are still open.
        """
        still_open = 0
        for occurrence in self.occurrences.open():
            if occurrence.state is OccurrenceState.DUE or not self._settle_one(occurrence):
                still_open += 1
        return still_open

    def _settle_one(self, occurrence: Occurrence) -> bool:
        job = str(occurrence.id)
        parent = self.results.states([job]).get(job)
        self._settle_jobs(occurrence)
        counted = self.occurrences.get(occurrence.id)
        if counted is None:
            return True
        verdict = judge(parent, counted.jobs, now=counted.state)
        if verdict.state is not counted.state:
            self.occurrences.advance(occurrence.id, to=verdict.state, at=self.clock.run(), reason=verdict.reason)
        if verdict.state.final:
            log.info(
                "occurrence ended",
                entry=occurrence.entry,
                state=verdict.state.value,
                reason=verdict.reason,
                jobs={state.value: count for state, count in counted.jobs.items()},
            )
        return verdict.state.final

    def _settle_jobs(self, occurrence: Occurrence) -> None:
        after = ""
        while jobs := self.fan_outs.unsettled(occurrence.id, after=after, limit=BATCH):
            known = self.results.states(jobs)
            moved = {job: state for job, state in known.items() if state is not JobState.QUEUED}
            if moved:
                self.fan_outs.settle(moved, at=self.clock.run())
            after = jobs[-1]

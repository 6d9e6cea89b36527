"""One tick of the schedule: look, admit, publish."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

import structlog

from slackwater.core.job import ExpiryReason
from slackwater.core.occurrence import Occurrence, OccurrenceState
from slackwater.core.schedule import Due, Schedule, look
from slackwater.engine.outage import Outage
from slackwater.errors import BrokerUnavailable
from slackwater.ports import Clock, OccurrenceStore, Publisher

log = structlog.get_logger("slackwater.schedule")
ADOPT_AFTER = timedelta(seconds=5)
"""An occurrence that was due this long ago (run clock) and is still not published has lost its balancer; any other
takes it over."""


@dataclass(frozen=True, kw_only=True)
class Ticker:
    """Publishes what is due. Several may run: a row of the store decides who publishes an occurrence.

    A crash between admitting and publishing leaves a row `due`; it is published later, by anyone. A crash between
    publishing and recording that publishes it again under the same id, which the guard ends as a duplicate.
    """

    schedule: Schedule
    lanes: Mapping[str, str]
    """Lane by task name."""
    occurrences: OccurrenceStore
    publisher: Publisher
    clock: Clock
    outage: Outage = field(default_factory=lambda: Outage("not published, will be tried again"))

    def next_wake(self, *, after: datetime) -> datetime | None:
        """Return the run clock's instant of the first due entry after one of the calendar; None where there is none."""
        due = [at for name in self.schedule.entries if (at := self.schedule.next_due(name, after)) is not None]
        return self.clock.run_at(min(due)) if due else None

    def tick(self) -> int:
        """Do one tick.

        Returns:
            How many occurrences were published.
        """
        now = self.clock.calendar()
        marks = self.occurrences.watermarks()
        finds = [self._look(name, since=marks.get(name), now=now) for name in self.schedule.entries]
        admitted = self._admit(finds, known=marks)
        mine = [one for find in finds for one in find.occurrences if one.id in admitted]
        published = [one for one in mine if one.state is OccurrenceState.DUE and self._publish(one)]
        return len(published) + self._adopt(skip={one.id for one in mine})

    def _look(self, name: str, *, since: datetime | None, now: datetime) -> Due:
        # An entry that nobody has adopted starts now: nobody wants last week's runs of a line written today.
        entry = self.schedule.entries[name]
        find = look(self.schedule, name, since=since or now, now=now, task_lane=self.lanes.get(entry.task or name))
        if find.missed_unrecorded:
            log.warning("occurrences missed, not recorded one by one", entry=name, count=find.missed_unrecorded)
        return find

    def _admit(self, finds: list[Due], *, known: Mapping[str, datetime]) -> frozenset[UUID]:
        names = list(self.schedule.entries)
        changed = {
            name: find.watermark
            for name, find in zip(names, finds, strict=True)
            if find.occurrences or name not in known
        }
        if not changed:
            return frozenset()
        return self.occurrences.admit([one for find in finds for one in find.occurrences], watermarks=changed)

    def _publish(self, occurrence: Occurrence) -> bool:
        if self.clock.calendar() > occurrence.start_by:
            self._end(occurrence, reason=f"{ExpiryReason.LATE}: its window closed before it was published")
            return False
        try:
            self.publisher.publish(occurrence)
        except BrokerUnavailable as error:
            self.outage.failed(error, entry=occurrence.entry)
            return False
        self.outage.worked()
        self.occurrences.advance(occurrence.id, to=OccurrenceState.QUEUED, at=self.clock.run())
        log.info("published", entry=occurrence.entry, due=occurrence.due_at.isoformat(), job=str(occurrence.id))
        return True

    def _end(self, occurrence: Occurrence, *, reason: str) -> None:
        self.occurrences.advance(occurrence.id, to=OccurrenceState.EXPIRED, at=self.clock.run(), reason=reason)
        log.warning("expired", entry=occurrence.entry, due=occurrence.due_at.isoformat(), reason=reason)

    def _adopt(self, *, skip: set[UUID]) -> int:
        run = self.clock.run()
        stale = [
            one
            for one in self.occurrences.open()
            if one.state is OccurrenceState.DUE
            and one.id not in skip
            and run - self.clock.run_at(one.due_at) >= ADOPT_AFTER
        ]
        return sum(self._publish(one) for one in stale)

"""The schedule: entries, and their occurrences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import takewhile
from types import MappingProxyType
from typing import Any
from uuid import UUID, uuid5
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from slackwater.core.cadence import Cadence
from slackwater.core.occurrence import Occurrence, OccurrenceState
from slackwater.errors import ScheduleError

_NAMESPACE = UUID("6f6d4d0e-9f43-5f6c-8a34-0f0a5d1c7c11")
MISSED_KEPT = 100
"""How many missed occurrences of one entry a single look back records; the rest is only counted."""


@dataclass(frozen=True)
class Entry:
    """A line of the schedule.

    Attributes:
        cadence: When it is due (`crontab(...)` or `every(...)`).
        expires: Its window: from due to `start_by`, on the calendar clock.
        task: The task's name; None takes the entry's own name.
        args: Positional arguments of the task.
        kwargs: Keyword arguments of the task.
        elastic: It, and its fan-out, may be held.

    Raises:
        ScheduleError: No window, or one below a second.
    """

    cadence: Cadence
    expires: timedelta = field(kw_only=True)
    task: str | None = field(default=None, kw_only=True)
    args: tuple[Any, ...] = field(default=(), kw_only=True)
    kwargs: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    elastic: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.expires < timedelta(seconds=1):
            raise ScheduleError(f"entry ({self.cadence}): expires must be at least one second, not {self.expires}")
        object.__setattr__(self, "kwargs", MappingProxyType(dict(self.kwargs)))


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """What runs when.

    Attributes:
        zone: Time zone of the crontabs.
        entries: By name.
        until: Last instant of the calendar at which anything is due; None for ever. For schedules that end, such as a
            compressed night's, whose processes outlive it on the calendar.

    Raises:
        ScheduleError: An unknown zone, or an end without one.
    """

    zone: str = "UTC"
    entries: Mapping[str, Entry] = field(default_factory=dict)
    until: datetime | None = None

    def __post_init__(self) -> None:
        if self.until is not None and self.until.tzinfo is None:
            raise ScheduleError(f"schedule: until={self.until} has no time zone; give an aware datetime")
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ScheduleError(
                f"schedule: no time zone is named {self.zone!r}; give one like 'Europe/Berlin'"
            ) from error
        object.__setattr__(self, "entries", MappingProxyType(dict(self.entries)))

    @property
    def zone_info(self) -> ZoneInfo:
        """Return the zone itself."""
        return ZoneInfo(self.zone)

    def next_due(self, name: str, after: datetime) -> datetime | None:
        """Return an entry's first due instant later than an instant; None where there is none."""
        return next(self.due_after(name, after), None)

    def due_after(self, name: str, after: datetime) -> Iterator[datetime]:
        """Yield an entry's due instants later than an instant, in order."""
        instants = self.entries[name].cadence.after(after, zone=self.zone_info)
        until = self.until
        return instants if until is None else takewhile(lambda at: at <= until, instants)


@dataclass(frozen=True, kw_only=True)
class Due:
    """What a look at one entry found.

    Attributes:
        occurrences: Those to be admitted: inside their window, or missed.
        watermark: Up to where the entry has now been looked at (calendar clock).
        missed_unrecorded: How many more were missed than are recorded one by one.
    """

    occurrences: tuple[Occurrence, ...]
    watermark: datetime
    missed_unrecorded: int = 0


def occurrence_id(entry: str, due_at: datetime) -> UUID:
    """Return the id of an occurrence: the same for the same entry and due instant, whoever asks."""
    return uuid5(_NAMESPACE, f"{entry}@{due_at.timestamp():.6f}")


def look(schedule: Schedule, name: str, *, since: datetime, now: datetime, task_lane: str | None) -> Due:
    """Find what came due for an entry in (since, now], and decide each: run, or missed.

    An occurrence still inside its window is due to be published; one beyond it is recorded as missed, and the next
    scheduled one takes over its work.

    Args:
        schedule: The entries.
        name: The entry.
        since: Watermark of the last look, calendar clock.
        now: Calendar clock.
        task_lane: Lane of the entry's task.
    """
    entry = schedule.entries[name]
    due = tuple(takewhile(lambda at: at <= now, schedule.due_after(name, since)))
    live = [at for at in due if now <= at + entry.expires]
    late = due[: len(due) - len(live)]
    kept = late[-MISSED_KEPT:]
    occurrences = [_occurrence(entry, name, at=at, lane=task_lane, state=OccurrenceState.MISSED) for at in kept]
    occurrences += [_occurrence(entry, name, at=at, lane=task_lane, state=OccurrenceState.DUE) for at in live]
    return Due(occurrences=tuple(occurrences), watermark=max(now, since), missed_unrecorded=len(late) - len(kept))


def _occurrence(entry: Entry, name: str, *, at: datetime, lane: str | None, state: OccurrenceState) -> Occurrence:
    missed = state is OccurrenceState.MISSED
    return Occurrence(
        id=occurrence_id(name, at),
        entry=name,
        task=entry.task or name,
        args=entry.args,
        kwargs=entry.kwargs,
        lane=lane,
        elastic=entry.elastic,
        due_at=at,
        start_by=at + entry.expires,
        state=state,
        reason="found after its window had closed" if missed else None,
    )

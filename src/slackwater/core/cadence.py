"""Cadences: when an entry is due. Crontab with Celery's meaning, and fixed intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from slackwater.core.crontab_fields import (
    DAY_OF_MONTH,
    DAY_OF_WEEK,
    HOUR,
    MINUTE,
    MONTH_OF_YEAR,
    Field,
)
from slackwater.errors import ScheduleError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EVERY = "*"


@dataclass(frozen=True, kw_only=True)
class Crontab:
    """A crontab with Celery's field names and Celery's meaning.

    Day of month and day of week must *both* match (as in Celery; classic cron takes either). Across a clock change
    a daily run is due once on either date and an hourly one 23 or 25 times (Debian cron's rules, as cronsim has them).
    """

    minute: str = _EVERY
    hour: str = _EVERY
    day_of_month: str = _EVERY
    month_of_year: str = _EVERY
    day_of_week: str = _EVERY

    def __post_init__(self) -> None:
        try:
            DAY_OF_WEEK.numbers(self.day_of_week)
            CronSim(self._by_date(), _EPOCH)
        except (CronSimError, ValueError) as error:
            raise ScheduleError(
                f"{self}: {error}; fields are minute hour day_of_month month_of_year day_of_week, as Celery's"
            ) from error

    def __str__(self) -> str:
        return f"crontab {self.minute} {self.hour} {self.day_of_month} {self.month_of_year} {self.day_of_week}"

    def _by_date(self) -> str:
        fields = (
            _plain(MINUTE, self.minute),
            _plain(HOUR, self.hour),
            _plain(DAY_OF_MONTH, self.day_of_month),
            _plain(MONTH_OF_YEAR, self.month_of_year),
            _EVERY,
        )
        return " ".join(fields)

    def after(self, instant: datetime, *, zone: ZoneInfo) -> Iterator[datetime]:
        """Yield the due instants (UTC) later than an instant, in order.

        Empty from the point on where nothing is due any more (30 February).
        """
        weekdays = DAY_OF_WEEK.numbers(self.day_of_week)
        for due in CronSim(self._by_date(), instant.astimezone(zone)):
            # Asked from within the hour that a clock change repeats, cronsim answers from its first pass.
            if due.isoweekday() % 7 in weekdays and (at := due.astimezone(UTC)) > instant:
                yield at


def _plain(field: Field, text: str) -> str:
    # A part that starts with a star is left so: cron then takes a run for one of many, not for a daily one, when the
    # clock changes.
    parts = text.lower().split(",")
    numbers = [sorted(field.numbers(part)) for part in parts]
    return ",".join(
        part if part.startswith(_EVERY) else ",".join(map(str, asked))
        for part, asked in zip(parts, numbers, strict=True)
    )


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A fixed interval, due at whole multiples since 1970 (UTC): every process agrees without asking."""

    every: timedelta

    def __post_init__(self) -> None:
        if self.every < timedelta(seconds=1):
            raise ScheduleError(f"{self}: an interval must be at least one second")

    def __str__(self) -> str:
        return f"every {self.every}"

    def after(self, instant: datetime, *, zone: ZoneInfo) -> Iterator[datetime]:  # noqa: ARG002 - one shape for both
        """Yield the due instants (UTC) later than an instant, in order, without end."""
        due = _EPOCH + ((instant - _EPOCH) // self.every + 1) * self.every
        while True:
            yield due
            due += self.every


Cadence = Crontab | Interval


def crontab(
    minute: int | str = _EVERY,
    hour: int | str = _EVERY,
    day_of_month: int | str = _EVERY,
    month_of_year: int | str = _EVERY,
    day_of_week: int | str = _EVERY,
) -> Crontab:
    """Return a crontab; the arguments are those of Celery's.

    Raises:
        ScheduleError: A field that cannot be.
    """
    return Crontab(
        minute=str(minute),
        hour=str(hour),
        day_of_month=str(day_of_month),
        month_of_year=str(month_of_year),
        day_of_week=str(day_of_week),
    )


def every(interval: timedelta) -> Interval:
    """Return a fixed interval.

    Raises:
        ScheduleError: Below one second.
    """
    return Interval(every=interval)

"""A crontab's fields, with Celery's grammar: lists, ranges that wrap, steps, names of days and months."""

from __future__ import annotations

import re
from dataclasses import dataclass

_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_PART = re.compile(r"(?:(?P<all>\*)|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>[1-9]\d*))?")


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field of a crontab: its name, its smallest and largest number, and the names that stand for numbers."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    def numbers(self, text: str) -> frozenset[int]:
        """Return the numbers that a field's text asks for.

        A range whose end is below its start wraps around (hours `22-4`, days `fri-mon`); a step needs a range or `*`.

        Raises:
            ValueError: The text is none of Celery's.
        """
        return frozenset(number for part in text.lower().split(",") for number in self._part(part))

    def _part(self, part: str) -> list[int]:
        match = _PART.fullmatch(part)
        if match is None or (match["step"] and match["first"] and not match["last"]):
            raise ValueError(f"{self.name} cannot be {part!r}")
        return self._span(match["first"], match["last"])[:: int(match["step"] or 1)]

    def _span(self, first: str | None, last: str | None) -> list[int]:
        if first is None:
            return list(range(self.low, self.high + 1))
        start = self._number(first)
        end = start if last is None else self._number(last)
        if end < start:
            return [*range(start, self.high + 1), *range(self.low, end + 1)]
        return list(range(start, end + 1))

    def _number(self, text: str) -> int:
        if text[:3] in self.names and text.isalpha():  # as in Celery, the first three letters make the name
            return self.names.index(text[:3]) + self.low
        number = int(text) if text.isdecimal() else -1
        if self.names == _DAYS and number == 7:
            return 0  # Sunday has two numbers in cron; Celery takes 0 alone
        if not self.low <= number <= self.high:
            raise ValueError(f"{self.name} cannot be {text!r}")
        return number


MINUTE = Field(name="minute", low=0, high=59)
HOUR = Field(name="hour", low=0, high=23)
DAY_OF_MONTH = Field(name="day_of_month", low=1, high=31)
MONTH_OF_YEAR = Field(name="month_of_year", low=1, high=12, names=_MONTHS)
DAY_OF_WEEK = Field(name="day_of_week", low=0, high=6, names=_DAYS)

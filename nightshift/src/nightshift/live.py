"""The night as it runs: one screen that refreshes, or a line now and then where there is no screen."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from nightshift.course import Span
from nightshift.errors import NightError
from nightshift.schedule import ZONE
from slackwater import LaneReading, Occurrence, OccurrenceState, Presence, Slackwater

MARKS = {
    OccurrenceState.DUE: "○",
    OccurrenceState.QUEUED: "○",
    OccurrenceState.RUNNING: "▶",
    OccurrenceState.DONE: "●",
    OccurrenceState.FAILED: "■",
    OccurrenceState.EXPIRED: "⊘",
    OccurrenceState.MISSED: "✕",
}
LINE_EVERY_S = 10.0
LOOK_BACK = timedelta(seconds=15)
BAR, BAR_WHERE_NARROW, WIDE = 20, 6, 80
HEADS = ("lane", "slots in use", "running", "waiting", "oldest")
COLUMNS = ((0, 1, 2, 3, 4), (0, 2, 3, 4), (0, 2, 3))
"""Which of the heads are shown: all of them, or the most that there is room for."""
BETWEEN = 2


class NightConsole(Console):
    """A console that says so when nobody reads it any more."""

    def on_broken_pipe(self) -> None:
        """Stop the night in the one way that has a line and an exit code of its own."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python flushes when it exits
        raise NightError("nobody reads the output any more; the night is stopped, nothing is left running")


@dataclass
class Screen:
    """Shows the night on a console; a context manager."""

    console: Console
    sw: Slackwater
    span: Span
    _live: Live | None = field(default=None, init=False)
    _next_line: float = field(default=0.0, init=False)
    _silent: set[str] = field(default_factory=set, init=False)

    def __enter__(self) -> Screen:
        """Take the screen, where there is one."""
        if self.console.is_terminal:
            self._live = Live(console=self.console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Give the screen back."""
        if self._live is not None:
            self._live.stop()

    def show(self) -> None:
        """Show what the balancer has read last."""
        if self._live is None and time.monotonic() < self._next_line:
            return
        self._next_line = time.monotonic() + LINE_EVERY_S
        calendar = min(self.sw.clock.calendar(), self.span.ends_at)
        if calendar < self.span.starts_at:
            self._print_or_update(f"the night begins at {_clock(self.span.starts_at)}, in a moment")
            return
        self._tell_silent()
        readings = latest(self.sw, now=self.sw.clock.run())
        occurrences = self.sw.store.occurrences.since(self.span.starts_at)
        if self._live is None:
            self._print_or_update(line(calendar, readings, occurrences))
        else:
            self._print_or_update(picture(calendar, readings, occurrences, span=self.span, width=self.console.width))

    def _tell_silent(self) -> None:
        """Say once of each worker that it has given no sign of life for longer than one counts."""
        workers, now = self.sw.store.presence.all(), self.sw.clock.run()
        for each in silences([one for one in workers if one.worker not in self._silent], self.sw, now=now):
            self.console.print(each, soft_wrap=self._live is None, highlight=False, markup=False)
        self._silent = {one.worker for one in workers if not one.alive(now)}

    def _print_or_update(self, shown: RenderableType) -> None:
        if self._live is None:
            self.console.print(shown, soft_wrap=True, highlight=False)
        else:
            self._live.update(shown)


def silences(workers: Sequence[Presence], sw: Slackwater, *, now: datetime) -> list[str]:
    """Return a line for each worker that has been silent for longer than its presence counts."""
    silent = [one for one in workers if not one.alive(now)]
    return [
        f"worker {one.worker} is silent since {_clock(sw.settings.tempo.calendar_at(one.refreshed_at))} "
        f"(pid {one.pid}): it hangs, or cannot reach the store"
        for one in silent
    ]


def latest(sw: Slackwater, *, now: datetime) -> list[LaneReading]:
    """Return each lane's last reading; a lane that was not read lately is unknown."""
    recent = {reading.lane: reading for reading in sw.store.readings.between(now - LOOK_BACK, now)}
    return [recent.get(lane, LaneReading(at=now, lane=lane)) for lane in sw.lanes]


def line(calendar: datetime, readings: Sequence[LaneReading], occurrences: Sequence[Occurrence]) -> str:
    """Return the night's state in one line."""
    lanes = ", ".join(f"{one.lane} {_count(one.running)} running {_count(one.ready)} waiting" for one in readings)
    marks = " ".join(f"{MARKS[one.state]} {one.entry}" for one in occurrences)
    return f"{_clock(calendar)}  {lanes}  {marks}".rstrip()


def picture(
    calendar: datetime, readings: Sequence[LaneReading], occurrences: Sequence[Occurrence], *, span: Span, width: int
) -> RenderableType:
    """Return the night's state as a small screen."""
    whole = (span.ends_at - span.starts_at).total_seconds()
    passed = min(max((calendar - span.starts_at).total_seconds(), 0.0), whole)
    lanes = _lanes(readings, width=width)
    head = Text(f"{_clock(calendar)} Berlin", style="bold")
    bar = Padding(ProgressBar(total=whole, completed=passed, width=min(60, width)))  # which alone would end no line
    parts: list[RenderableType] = [head, bar, lanes]
    parts += [Text(_occurrence(one)) for one in occurrences]
    return Group(*parts)


def _lanes(readings: Sequence[LaneReading], *, width: int) -> RenderableType:
    """Return the lanes as a table of those columns for which there is room, or line by line: no number is ever cut."""
    long = BAR if width >= WIDE else BAR_WHERE_NARROW
    cells = [
        (one.lane, _bar(one, long), _count(one.running), _count(one.ready), _age(one.oldest_age)) for one in readings
    ]
    for shown in COLUMNS:
        rows = [[HEADS[number] for number in shown], *([cell[number] for number in shown] for cell in cells)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        if sum(widths) + BETWEEN * (len(widths) - 1) <= width:
            table = Table(box=None, pad_edge=False)
            for heading in rows[0]:
                table.add_column(heading, no_wrap=True)
            for row in rows[1:]:
                table.add_row(*row)
            return table
    return Group(*(Text(f"{lane}: {running} running, {waiting} waiting") for lane, _, running, waiting, _ in cells))


def _occurrence(one: Occurrence) -> str:
    jobs = ", ".join(f"{count} {state}" for state, count in one.jobs.items())
    return f"{MARKS[one.state]} {_clock(one.due_at)} {one.entry}: {one.state}" + (f" ({jobs})" if jobs else "")


def _bar(one: LaneReading, length: int) -> str:
    if one.slots is None or one.running is None:
        return "unknown"
    full = round(length * one.running / one.slots) if one.slots else 0
    return "█" * full + "·" * (length - full) + f" of {one.slots}"


def _count(value: int | None) -> str:
    return "?" if value is None else str(value)


def _age(value: timedelta | None) -> str:
    return "" if value is None else f"{value.total_seconds():.1f} s"


def _clock(instant: datetime) -> str:
    return instant.astimezone(ZoneInfo(ZONE)).strftime("%H:%M")

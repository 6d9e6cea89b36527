"""A lane's occurrences on their track: marks, bars, the way to `start_by`, and names that do not collide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from xml.sax.saxutils import escape

from nightshift.report.marks import Mark, draw_mark, mark_of
from nightshift.report.scale import TimeScale
from nightshift.report.svg import path, tag, text, title, width_of
from nightshift.report.wording import clock
from slackwater import Occurrence

ROW_PX = 17
_MOST_ROWS = 3
_MOST_NAMED = 3
_GAP_PX = 10


class Side(StrEnum):
    """Where an occurrence's name stands."""

    LEFT = "left"
    RIGHT = "right"
    NONE = "none"
    """Nowhere: the tooltip has it."""


@dataclass(frozen=True, kw_only=True)
class Placed:
    """An occurrence in its row, with the side of its name."""

    occurrence: Occurrence
    row: int
    side: Side


def arrange(occurrences: Sequence[Occurrence], scale: TimeScale) -> tuple[Placed, ...]:
    """Find each occurrence a row and its name a side, so that nothing collides.

    An entry with more than a few occurrences is named at its first one alone.
    """
    frequent = {entry for entry, times in Counter(one.entry for one in occurrences).items() if times > _MOST_NAMED}
    taken: list[list[tuple[float, float]]] = [[] for _ in range(_MOST_ROWS)]
    named: set[str] = set()
    placed = []
    for occurrence in sorted(occurrences, key=lambda one: (one.due_at, one.entry)):
        is_quiet = occurrence.entry in frequent and occurrence.entry in named
        sides = [Side.NONE] if is_quiet else [Side.LEFT, Side.RIGHT]
        row, side = _fit(occurrence, taken, scale=scale, sides=sides)
        taken[row].append(_extent(occurrence, side, scale=scale))
        named |= {occurrence.entry} if side is not Side.NONE else set()
        placed.append(Placed(occurrence=occurrence, row=row, side=side))
    return tuple(placed)


def _fit(
    occurrence: Occurrence, taken: list[list[tuple[float, float]]], *, scale: TimeScale, sides: list[Side]
) -> tuple[int, Side]:
    for row, others in enumerate(taken):
        for side in sides:
            left, right = _extent(occurrence, side, scale=scale)
            inside = left >= scale.left and right <= scale.right + 2
            if inside and all(right < start or left > end for start, end in others):
                return row, side
    return 0, Side.NONE


def _extent(occurrence: Occurrence, side: Side, *, scale: TimeScale) -> tuple[float, float]:
    left, right = scale.x(occurrence.due_at) - 6, _end_x(occurrence, scale) + 6
    room = width_of(occurrence.entry) + _GAP_PX
    if side is Side.LEFT:
        return left - room, right + _note_px(occurrence)
    return left, right + _note_px(occurrence) + (room if side is Side.RIGHT else 0)


def _end_x(occurrence: Occurrence, scale: TimeScale) -> float:
    ended = [scale.x_of_run(occurrence.ended_at)] if occurrence.ended_at is not None else []
    return max([scale.x(occurrence.due_at), scale.x(occurrence.start_by), *ended])


def note_of(occurrence: Occurrence) -> str:
    """Say in a few words what became of an occurrence's jobs."""
    parts = [f"{number:,} {state}" for state, number in occurrence.jobs.items() if number]
    if parts:
        return ", ".join(parts)
    return "" if mark_of(occurrence.state) in (Mark.DONE, Mark.PLANNED) else occurrence.state.value


def _note_px(occurrence: Occurrence) -> float:
    note = note_of(occurrence)
    return width_of(note, 11.5) + _GAP_PX if note else 0.0


def draw_track(placed: Sequence[Placed], scale: TimeScale, *, top: float) -> str:
    """Draw a lane's occurrences below `top` (px)."""
    return "".join(_draw(one, scale, y=top + ROW_PX * one.row + ROW_PX / 2) for one in placed)


def _draw(placed: Placed, scale: TimeScale, *, y: float) -> str:
    occurrence = placed.occurrence
    due_x, end_x = scale.x(occurrence.due_at), _end_x(occurrence, scale)
    mark = mark_of(occurrence.state)
    parts = [title(describe(occurrence, scale)), _bar(occurrence, scale, y=y)]
    if scale.shows(occurrence.start_by):
        parts.append(_way_to_start_by(occurrence, scale, y=y))
    parts.append(draw_mark(mark, due_x, y))
    note = note_of(occurrence)
    note_css = f"sub halo {mark}-note"
    if placed.side is Side.LEFT:
        parts.append(text(occurrence.entry, due_x - 10, y + 4, class_="label halo", text_anchor="end"))
        parts.append(text(note, end_x + 8, y + 4, class_=note_css) if note else "")
    elif placed.side is Side.RIGHT:
        after = tag("tspan", escape(note), dx=7, class_=note_css) if note else ""
        label = escape(occurrence.entry) + after
        parts.append(tag("text", label, x=end_x + 8, y=y + 4, class_="label halo"))
    return tag("g", *parts)


def _bar(occurrence: Occurrence, scale: TimeScale, *, y: float) -> str:
    start = occurrence.started_at or occurrence.published_at
    if start is None or occurrence.started_at is None:
        return ""
    left = scale.x_of_run(start)
    right = scale.right if occurrence.ended_at is None else scale.x_of_run(occurrence.ended_at)
    css = f"bar {mark_of(occurrence.state)}"
    return tag("rect", x=left, y=y - 3.5, width=max(2.0, right - left), height=7, rx=1.5, class_=css)


def _way_to_start_by(occurrence: Occurrence, scale: TimeScale, *, y: float) -> str:
    by_x = scale.x(occurrence.start_by)
    began = occurrence.ended_at if occurrence.started_at is not None else None
    from_x = scale.x(occurrence.due_at) + 6 if began is None else scale.x_of_run(began) + 2
    way = path(f"M{from_x:.1f} {y:.1f}H{by_x:.1f}", "way") if from_x < by_x else ""
    return way + path(f"M{by_x:.1f} {y - 6.5:.1f}v13", "tick")


def describe(occurrence: Occurrence, scale: TimeScale) -> str:
    """Say all of an occurrence in one line, for the tooltip and for screen readers."""
    zone = scale.zone
    parts = [f"{occurrence.entry}: {occurrence.state}", f"due {clock(occurrence.due_at, zone)}"]
    for word, instant in (("started", occurrence.started_at), ("ended", occurrence.ended_at)):
        if instant is not None:
            parts.append(f"{word} {clock(scale.tempo.calendar_at(instant), zone)}")
    parts.append(f"start_by {clock(occurrence.start_by, zone)}")
    if note := note_of(occurrence):
        parts.append(note)
    return ", ".join([*parts, *([occurrence.reason] if occurrence.reason else [])])

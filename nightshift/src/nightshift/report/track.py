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
_MOST_ROWS = 4
_MOST_NAMED = 3
_GAP_PX = 10
_SLACK_PX = 6


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

    An entry with more than a few occurrences has them all in one row, and its name once.
    """
    taken: list[list[tuple[float, float]]] = [[] for _ in range(_MOST_ROWS)]
    placed: list[Placed] = []
    for block in _blocks(occurrences):
        row, side = _fit(block, taken, scale=scale)
        taken[row].append(_extent(block, side, scale=scale))
        named = {Side.LEFT: block[0], Side.RIGHT: block[-1], Side.NONE: None}[side]
        placed += [Placed(occurrence=one, row=row, side=side if one is named else Side.NONE) for one in block]
    return tuple(placed)


def _blocks(occurrences: Sequence[Occurrence]) -> list[list[Occurrence]]:
    """Sort occurrences into blocks that stay in one row: all of a frequent entry, else each one alone."""
    often = {entry for entry, times in Counter(one.entry for one in occurrences).items() if times > _MOST_NAMED}
    blocks: dict[object, list[Occurrence]] = {}
    for number, one in enumerate(sorted(occurrences, key=lambda one: (one.due_at, one.entry))):
        blocks.setdefault(one.entry if one.entry in often else number, []).append(one)
    return list(blocks.values())


def _fit(
    block: Sequence[Occurrence], taken: Sequence[Sequence[tuple[float, float]]], *, scale: TimeScale
) -> tuple[int, Side]:
    for row, others in enumerate(taken):
        for side in (Side.LEFT, Side.RIGHT):
            left, right = _extent(block, side, scale=scale)
            inside = left >= scale.left - _SLACK_PX and right <= scale.right + _SLACK_PX
            if inside and all(right < start or left > end for start, end in others):
                return row, side
    free = (row for row, others in enumerate(taken) if not others)
    return next(free, 0), Side.NONE


def _extent(block: Sequence[Occurrence], side: Side, *, scale: TimeScale) -> tuple[float, float]:
    left = scale.x(block[0].due_at) - _SLACK_PX
    right = max(_end_x(one, scale) for one in block) + _SLACK_PX
    if side is Side.NONE:
        return left, right
    room, note = width_of(block[0].entry) + _GAP_PX, _note_px(block[-1])
    if side is Side.RIGHT:
        return left, right + room + note
    return left - room, right + note if _note_fits(block[-1], scale) else right


def _end_x(occurrence: Occurrence, scale: TimeScale) -> float:
    ended = [scale.x_of_run(occurrence.ended_at)] if occurrence.ended_at is not None else []
    if _is_open(occurrence):
        ended = [scale.right]
    return max([scale.x(occurrence.due_at), scale.x(occurrence.start_by), *ended])


def _is_open(occurrence: Occurrence) -> bool:
    return occurrence.started_at is not None and occurrence.ended_at is None


def note_of(occurrence: Occurrence) -> str:
    """Say in a few words what became of an occurrence's jobs."""
    parts = [f"{number:,} {state}" for state, number in occurrence.jobs.items() if number]
    if parts:
        return ", ".join(parts)
    return "" if mark_of(occurrence.state) in (Mark.DONE, Mark.PLANNED, Mark.RUNNING) else occurrence.state.value


def _note_px(occurrence: Occurrence) -> float:
    note = note_of(occurrence)
    return width_of(note, 11.5) + _GAP_PX if note else 0.0


def _note_fits(occurrence: Occurrence, scale: TimeScale) -> bool:
    return _end_x(occurrence, scale) + _note_px(occurrence) <= scale.right


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
        parts.append(text(note, end_x + 8, y + 4, class_=note_css) if note and _note_fits(occurrence, scale) else "")
    elif placed.side is Side.RIGHT:
        after = tag("tspan", escape(note), dx=7, class_=note_css) if note else ""
        label = escape(occurrence.entry) + after
        parts.append(tag("text", label, x=end_x + 8, y=y + 4, class_="label halo"))
    return tag("g", *parts)


def _bar(occurrence: Occurrence, scale: TimeScale, *, y: float) -> str:
    if occurrence.started_at is None:
        return ""
    left = scale.x_of_run(occurrence.started_at)
    right = scale.right if occurrence.ended_at is None else scale.x_of_run(occurrence.ended_at)
    css = f"bar {'running' if _is_open(occurrence) else 'over'}"
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

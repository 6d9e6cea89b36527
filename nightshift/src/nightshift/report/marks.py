"""Marks of occurrences: told apart by shape first, by colour second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum

from nightshift.report.svg import path, tag
from slackwater import Occurrence, OccurrenceState


class Mark(StrEnum):
    """The marks, in the order of the legend."""

    DONE = "done"
    RUNNING = "running"
    PLANNED = "planned"
    EXPIRED = "expired"
    MISSED = "missed"
    FAILED = "failed"


SIGNS: Mapping[Mark, str] = {
    Mark.DONE: "●",
    Mark.RUNNING: "▶",
    Mark.PLANNED: "○",
    Mark.EXPIRED: "⊘",
    Mark.MISSED: "✕",
    Mark.FAILED: "■",
}

_MARKS = {
    OccurrenceState.DUE: Mark.PLANNED,
    OccurrenceState.QUEUED: Mark.PLANNED,
    OccurrenceState.RUNNING: Mark.RUNNING,
    OccurrenceState.DONE: Mark.DONE,
    OccurrenceState.FAILED: Mark.FAILED,
    OccurrenceState.EXPIRED: Mark.EXPIRED,
    OccurrenceState.MISSED: Mark.MISSED,
}


def mark_of(state: OccurrenceState) -> Mark:
    """Return the mark of a state."""
    return _MARKS[state]


def tally(occurrences: Iterable[Occurrence]) -> Mapping[Mark, int]:
    """Count occurrences by mark, for all marks: the legend."""
    counted = Counter(mark_of(occurrence.state) for occurrence in occurrences)
    return {mark: counted[mark] for mark in Mark}


def draw_mark(mark: Mark, x: float, y: float, *, size: float = 4.6) -> str:
    """Draw a mark around a point; `size` is half its width, px."""
    s = size
    if mark is Mark.RUNNING:
        return path(f"M{x - s:.1f} {y - s:.1f}L{x + s * 1.1:.1f} {y:.1f}L{x - s:.1f} {y + s:.1f}Z", "mark running")
    if mark is Mark.MISSED:
        return path(f"M{x - s:.1f} {y - s:.1f}l{2 * s} {2 * s}M{x + s:.1f} {y - s:.1f}l{-2 * s} {2 * s}", "mark missed")
    if mark is Mark.FAILED:
        return tag("rect", x=x - s, y=y - s, width=2 * s, height=2 * s, class_="mark failed")
    ring = tag("circle", cx=x, cy=y, r=s, class_=f"mark {mark}")
    if mark is Mark.EXPIRED:
        d = s * 0.7
        return ring + path(f"M{x - d:.1f} {y + d:.1f}L{x + d:.1f} {y - d:.1f}", "mark expired")
    return ring


def icon(mark: Mark) -> str:
    """Draw a mark as a picture of its own, for a line of text (its word stands beside it)."""
    return tag("svg", draw_mark(mark, 6.0, 6.0), width=12, height=12, viewBox="0 0 12 12", aria_hidden="true")

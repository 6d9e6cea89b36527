"""Strikes of chaos on the picture: a wedge at each moment, and a bar for as long as its target was away."""

from __future__ import annotations

from nightshift.chaos.strike import Struck
from nightshift.report.night import Night
from nightshift.report.scale import TimeScale
from nightshift.report.svg import path, tag, title
from nightshift.report.wording import night_clock, seconds

_WEDGE_PX, _BAR_PX = 3.5, 2.0


def draw_strikes(night: Night, scale: TimeScale, *, top: float) -> str:
    """Draw a night's strikes along a line (px); nothing for a night without chaos."""
    return "".join(_strike(one, night, scale, top=top) for one in night.chaos)


def back_after(one: Struck) -> str:
    """Say when a target was there again."""
    if one.recovered_at is None:
        return "it did not come back"
    after_s = (one.recovered_at - one.at).total_seconds()
    return f"{seconds(after_s)}, {one.recovery}" if one.recovery else "at once"


def _strike(one: Struck, night: Night, scale: TimeScale, *, top: float) -> str:
    x = scale.x_of_run(one.at)
    until = scale.right if one.recovered_at is None else scale.x_of_run(one.recovered_at)
    at = night_clock(one.at, tempo=night.tempo, zone=night.zone)
    return tag(
        "g",
        title(f"{at} {one.target}: {one.kind}, back after: {back_after(one)}"),
        tag("rect", x=x, y=top, width=max(0.0, until - x), height=_BAR_PX, class_="strike"),
        path(f"M{x - _WEDGE_PX:.1f} {top - 2 * _WEDGE_PX:.1f}h{2 * _WEDGE_PX}L{x:.1f} {top:.1f}Z", "strike"),
    )

"""One lane's band: its occurrences on a track, what ran above its line, what waited below it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from nightshift.report.areas import Sample, area, edge, gaps, with_silences
from nightshift.report.checks import Report
from nightshift.report.figures import LaneFigures, Waits, by_lane
from nightshift.report.people_waits import draw_waits, lane_of_people
from nightshift.report.scale import Height, TimeScale
from nightshift.report.svg import path, tag, text, title, width_of
from nightshift.report.track import ROW_PX, Placed, arrange, draw_track
from nightshift.report.wording import count, seconds
from slackwater import Lane, LaneReading

_UP_PX, _DOWN_PX, _WAITS_PX, _PAD_PX = 40.0, 34.0, 38.0, 9.0
_LINE_PX = 16.0


@dataclass(frozen=True, kw_only=True)
class Band:
    """What one band shows, and how high its parts are (px).

    Attributes:
        lane: The lane.
        figures: Its figures.
        readings: In the order of time; None between two that are far apart.
        elastic: How many elastic bodies ran at each reading.
        occurrences: Arranged on the track.
        track_px: Height of the track.
        down_px: Height below the line.
        has_people: People wait in this lane.
    """

    lane: Lane
    figures: LaneFigures
    readings: Sequence[LaneReading | None]
    elastic: Sequence[int]
    occurrences: Sequence[Placed]
    track_px: float
    down_px: float
    has_people: bool

    @property
    def px(self) -> float:
        """Height of the whole band."""
        drawn = self.track_px + _UP_PX + self.down_px + (_WAITS_PX + 10 if self.has_people else 0)
        return max(drawn, 4 * _LINE_PX + 4) + 2 * _PAD_PX


def bands(report: Report, scale: TimeScale) -> tuple[Band, ...]:
    """Put together the bands, one a lane, in the lanes' order."""
    return tuple(
        _band(lane, figures, report=report, scale=scale)
        for lane, figures in zip(report.night.lanes, report.figures.lanes, strict=True)
    )


def _band(lane: Lane, figures: LaneFigures, *, report: Report, scale: TimeScale) -> Band:
    night = report.night
    placed = arrange([one for one in night.occurrences if one.lane == lane.name], scale)
    readings = with_silences(by_lane(night.readings).get(lane.name, ()))
    rows = max((one.row + 1 for one in placed), default=0)
    return Band(
        lane=lane,
        figures=figures,
        readings=readings,
        elastic=_elastic_running(report, readings, lane=lane.name),
        occurrences=placed,
        track_px=rows * ROW_PX + (6 if rows else 0),
        down_px=_DOWN_PX if (figures.peak_ready or 0) > 1 else 8.0,
        has_people=lane.name == lane_of_people(night),
    )


def _elastic_running(report: Report, readings: Sequence[LaneReading | None], *, lane: str) -> list[int]:
    runs = [run for run in report.night.runs if run.elastic and run.lane == lane]
    starts = sorted(run.started_at for run in runs)
    ends = sorted(run.ended_at for run in runs if run.ended_at is not None)
    return [
        0 if reading is None else bisect_right(starts, reading.at) - bisect_right(ends, reading.at)
        for reading in readings
    ]


def draw_band(band: Band, scale: TimeScale, *, top: float, report: Report) -> str:
    """Draw a band below `top` (px), its name and figures in the margin."""
    inner = top + _PAD_PX
    base = inner + band.track_px + _UP_PX
    parts = [
        path(f"M0 {top:.1f}H{scale.right:.1f}", "rule"),
        _margin(band, report.figures.click_to_start, top=inner),
        *_above(band, scale, base=base),
        *_below(band, scale, base=base),
        path(f"M{scale.left:.1f} {base:.1f}H{scale.right:.1f}", "base"),
        *_gaps(band, scale, base=base),
        draw_track(band.occurrences, scale, top=inner),
    ]
    if band.has_people:
        parts.append(draw_waits(report.night, scale, top=base + band.down_px + 8, px=_WAITS_PX))
    return tag("g", *parts)


def margin_lines(band: Band, waits: Waits) -> tuple[str, ...]:
    """Say what the band shows in a few short lines."""
    figures = band.figures
    slots = figures.slots if figures.slots is not None else band.lane.slots
    running = "running unknown" if figures.peak_running is None else f"peak {figures.peak_running:,} running"
    waiting = "waiting unknown" if figures.peak_ready is None else f"peak {figures.peak_ready:,} waiting"
    oldest = "" if not figures.peak_oldest_s else f", oldest {seconds(figures.peak_oldest_s)}"
    lines = [f"{count(slots, 'slot')}, {running}", waiting + oldest]
    if band.has_people:
        lines.append(f"people: p95 {seconds(waits.p95_s)}, longest {seconds(waits.max_s)}")
    return (*lines, "protected" if band.lane.protected else "not protected")


def _margin(band: Band, waits: Waits, *, top: float) -> str:
    lines = (
        text(line, 0, top + 11 + _LINE_PX * number, class_="sub", data_line=f"{band.lane.name}/{number}")
        for number, line in enumerate(margin_lines(band, waits), start=1)
    )
    return text(band.lane.name, 0, top + 11, class_="name") + "".join(lines)


def _above(band: Band, scale: TimeScale, *, base: float) -> list[str]:
    slots = band.figures.slots if band.figures.slots is not None else band.lane.slots
    height = Height(full=max(slots, band.figures.peak_running or 0), px=_UP_PX - 8)
    each = height.of(1)
    steady: list[Sample | None] = []
    elastic: list[Sample | None] = []
    for reading, flexible in zip(band.readings, band.elastic, strict=True):
        known = None if reading is None or reading.running is None else reading
        running = 0 if known is None else known.running or 0
        rest = max(0, running - flexible)
        x = 0.0 if known is None else scale.x_of_run(known.at)
        steady.append(None if known is None else Sample(x=x, amount=rest))
        elastic.append(None if known is None else Sample(x=x, amount=running, floor=rest))
    ceiling = base - height.of(slots)
    outline = edge([one if one and one.amount > one.floor else None for one in elastic], base, each)
    return [
        path(area(steady, base, each), "steady"),
        path(area(elastic, base, each), "elastic"),
        path(outline, "elastic-edge"),
        path(f"M{scale.left:.1f} {ceiling:.1f}H{scale.right:.1f}", "ceiling"),
        text(count(slots, "slot"), scale.right, ceiling - 3, class_="sub halo", text_anchor="end"),
    ]


def _below(band: Band, scale: TimeScale, *, base: float) -> list[str]:
    peak = band.figures.peak_ready or 0
    height = Height(full=max(peak, band.lane.slots), px=band.down_px - 2)
    samples = [
        None if one is None or one.ready is None else Sample(x=scale.x_of_run(one.at), amount=one.ready)
        for one in band.readings
    ]
    css = "waiting amber" if any(band.elastic) else "waiting"
    shown = [one if one and one.amount else None for one in samples]
    parts = [path(area(samples, base, -height.of(1)), css), path(edge(shown, base, -height.of(1)), f"{css} edge")]
    if peak > 1:
        highest = max((one for one in samples if one), key=lambda one: one.amount)
        parts.append(_peak_label(highest, peak, scale=scale, y=base + height.of(peak)))
    return parts


def _peak_label(highest: Sample, peak: int, *, scale: TimeScale, y: float) -> str:
    label = f"{peak:,} waiting"
    if highest.x - width_of(label) - 8 > scale.left:
        return text(label, highest.x - 7, y, class_="sub halo", text_anchor="end")
    return text(label, highest.x + 7, y, class_="sub halo")


def _gaps(band: Band, scale: TimeScale, *, base: float) -> list[str]:
    parts = []
    for left, right in gaps(band.readings, scale):
        label = "no reading"
        fits = right - left > width_of(label, 11.5) + 4
        shown = text(label if fits else "?", (left + right) / 2, base - 8, class_="sub halo", text_anchor="middle")
        box = tag("rect", x=left, y=base - _UP_PX + 8, width=right - left, height=_UP_PX - 8, class_="gap")
        parts.append(tag("g", title("no reading"), box, shown))
    return parts

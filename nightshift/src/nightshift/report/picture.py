"""The picture of the night: time across, each lane a band, all on one clock. Inline SVG, in light and dark."""

from __future__ import annotations

from importlib.resources import files

from nightshift.report.checks import Report
from nightshift.report.lane_band import bands, draw_band
from nightshift.report.marks import draw_mark, tally
from nightshift.report.night import Night
from nightshift.report.scale import TimeScale
from nightshift.report.strikes import draw_strikes
from nightshift.report.svg import path, tag, text, title, width_of
from nightshift.report.wording import clock, count

WIDTH_PX = 1280.0
_MARGIN_PX = 212.0
_HEAD_PX = 78.0


def picture(report: Report) -> str:
    """Draw the night as one SVG element that brings its own palette; it stands alone or inside a page."""
    scale = time_scale(report.night)
    drawn, y = [], _HEAD_PX
    for band in bands(report, scale):
        drawn.append(draw_band(band, scale, top=y, report=report))
        y += band.px
    height = y + 4
    style = tag("style", files("nightshift.report").joinpath("templates/picture.css").read_text(encoding="utf-8"))
    return tag(
        "svg",
        title(f"The night of {heading(report.night)}"),
        tag("desc", _description(report)),
        style,
        tag("rect", width=WIDTH_PX, height=height, class_="ground"),
        _head(report, scale),
        _grid(scale, height=height),
        *drawn,
        draw_strikes(report.night, scale, top=_HEAD_PX - 2),
        path(f"M0 {_HEAD_PX - 6:.1f}V{height:.1f}", "moment"),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH_PX:.0f} {height:.0f}",
        class_="night",
        role="img",
    )


def time_scale(night: Night) -> TimeScale:
    """Return the picture's clock."""
    return TimeScale(
        starts_at=night.starts_at,
        ends_at=night.ends_at,
        tempo=night.tempo,
        zone=night.zone,
        left=_MARGIN_PX,
        right=WIDTH_PX - 2,
    )


def heading(night: Night) -> str:
    """Say which night it was: date, from and to, in the zone of its people."""
    start = night.starts_at.astimezone(night.zone)
    city = night.zone.key.rsplit("/", 1)[-1].replace("_", " ")
    times = f"{clock(night.starts_at, night.zone)} to {clock(night.ends_at, night.zone)}"
    return f"{start:%a} {start.day} {start:%B %Y}, {times} in {city}"


def _description(report: Report) -> str:
    marks = ", ".join(f"{number} {mark}" for mark, number in tally(report.night.occurrences).items() if number)
    lanes = count(len(report.night.lanes), "lane")
    struck = f" Wedges at the top: {count(len(report.night.chaos), 'strike')} of chaos." if report.night.chaos else ""
    shown = f"{lanes} over the night's clock: running work above each line, waiting work below."
    return f"{shown} Occurrences: {marks}.{struck}"


def _head(report: Report, scale: TimeScale) -> str:
    parts = [text(heading(report.night), 0, 18, class_="heading"), _key(scale)]
    x = scale.right
    for mark, number in reversed(list(tally(report.night.occurrences).items())):
        label = f"{number} {mark}"
        x -= width_of(label) + 4
        parts += [text(label, x, 18, class_="label" if number else "sub"), draw_mark(mark, x - 10, 14)]
        x -= 26
    return "".join(parts)


def _key(scale: TimeScale) -> str:
    """Say what the areas mean, at the left of the second line."""
    parts, x = [], scale.left
    for css, label in (
        ("steady", "running"),
        ("elastic", "running, elastic (may be held)"),
        ("waiting", "waiting, below the line"),
    ):
        parts += [
            tag("rect", x=x, y=33, width=11, height=11, rx=1.5, class_=css),
            text(label, x + 17, 43, class_="sub"),
        ]
        x += width_of(label, 11.5) + 36
    parts += [path(f"M{x:.1f} 39H{x + 16:.1f}", "way"), path(f"M{x + 17:.1f} 33v12", "tick")]
    parts.append(text("start_by: the last moment to start", x + 25, 43, class_="sub"))
    x += 240
    parts.append(tag("rect", x=x, y=33, width=11, height=11, class_="gap"))
    parts.append(text("no reading: unknown, not zero", x + 17, 43, class_="sub"))
    return "".join(parts)


def _grid(scale: TimeScale, *, height: float) -> str:
    parts = []
    for hour in scale.hours():
        x = scale.x(hour)
        anchor = "start" if x < scale.left + 16 else "end" if x > scale.right - 16 else "middle"
        parts.append(path(f"M{x:.1f} {_HEAD_PX - 6:.1f}V{height:.1f}", "grid"))
        parts.append(text(f"{hour:%H:%M}", x, _HEAD_PX - 11, class_="hour", text_anchor=anchor))
    return "".join(parts)

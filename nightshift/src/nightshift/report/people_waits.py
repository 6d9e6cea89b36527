"""The waits of people, click by click, against the limit."""

from __future__ import annotations

from nightshift.report.night import Click, Night
from nightshift.report.people import first_starts
from nightshift.report.scale import Height, TimeScale
from nightshift.report.svg import path, tag, text, title
from nightshift.report.wording import seconds

LIMIT_S = 0.5
"""A person's job should start within this, real time."""

_FULL_S = 0.7
_LIMIT_LABEL = f"{LIMIT_S} s: the limit for people; each dot is a click, as high as its wait"


def lane_of_people(night: Night) -> str | None:
    """Return the lane in which people's jobs run; None where nobody clicked."""
    jobs = {click.job for click in night.clicks}
    return next((demand.lane for demand in night.demands if demand.job in jobs), None)


def draw_waits(night: Night, scale: TimeScale, *, top: float, px: float) -> str:
    """Draw a dot for each click, as high as its wait, under a line for the limit.

    A wait beyond the scale is a triangle at its top; a job that never started is a cross there.

    Args:
        night: The clicks, and when their jobs started.
        scale: The night's clock.
        top: y of the scale's top, px.
        px: Its height.
    """
    base, height = top + px, Height(full=_FULL_S, px=px)
    first = first_starts(night.runs)
    dots = []
    for click in sorted(night.clicks, key=lambda click: click.clicked_at):
        run = first.get(click.job)
        wait_s = None if run is None else (run.started_at - click.clicked_at).total_seconds()
        dots.append(_dot(click, wait_s, x=scale.x_of_run(click.clicked_at), base=base, height=height))
    limit_y = base - height.of(LIMIT_S)
    return "".join(
        (
            path(f"M{scale.left:.1f} {limit_y:.1f}H{scale.right:.1f}", "limit"),
            *dots,
            path(f"M{scale.left:.1f} {base:.1f}H{scale.right:.1f}", "base"),
            text(_LIMIT_LABEL, scale.left + 6, limit_y - 3, class_="sub halo"),
        )
    )


def _dot(click: Click, wait_s: float | None, *, x: float, base: float, height: Height) -> str:
    top = base - height.px
    if wait_s is None:
        told = title(f"run {click.run_id} of {click.tenant}: never started")
        return tag("g", told, path(f"M{x - 4:.1f} {top - 4:.1f}l8 8M{x + 4:.1f} {top - 4:.1f}l-8 8", "mark missed"))
    told = title(f"run {click.run_id} of {click.tenant}: started after {seconds(wait_s)}")
    if wait_s > height.full:
        return tag("g", told, path(f"M{x:.1f} {top - 4:.1f}l4.5 8h-9Z", "over"))
    css = "wait over" if wait_s > LIMIT_S else "wait"
    y = base - height.of(wait_s)
    return tag("g", told, path(f"M{x:.1f} {base:.1f}V{y:.1f}", "stem"), tag("circle", cx=x, cy=y, r=1.7, class_=css))

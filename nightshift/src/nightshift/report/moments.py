"""What each lane did at each moment, for the script that reads the picture under the pointer."""

from __future__ import annotations

from typing import Any

from nightshift.report.checks import Report
from nightshift.report.figures import by_lane
from nightshift.report.picture import WIDTH_PX, time_scale
from nightshift.report.wording import clock


def moments(report: Report) -> dict[str, Any]:
    """Return, in plain JSON types, the readings of each lane.

    A reading is x (px), time of night, running, slots, ready; null is unknown.
    """
    scale, night = time_scale(report.night), report.night
    readings = by_lane(night.readings)
    return {
        "width": WIDTH_PX,
        "left": scale.left,
        "right": scale.right,
        "lanes": {
            lane.name: [
                (
                    round(scale.x_of_run(one.at), 1),
                    clock(night.tempo.calendar_at(one.at), night.zone),
                    one.running,
                    one.slots,
                    one.ready,
                )
                for one in readings.get(lane.name, ())
            ]
            for lane in night.lanes
        },
    }

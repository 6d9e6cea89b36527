"""The checks of the schedule: no first start after `start_by`, and each due occurrence recorded once."""

from __future__ import annotations

from collections import Counter

from nightshift.report.check import Check, check
from nightshift.report.night import Night
from nightshift.report.people import first_starts
from nightshift.report.wording import clock, count, night_clock


def no_late_first_start(night: Night) -> Check:
    """Check that no job started for the first time after its `start_by`, on the calendar clock.

    The store counts starts as well: one that it has let start, and whose worker died before it could write that down,
    was started before, and may come late to find out what that start has done.
    """
    restarted = {one.job for one in night.restarts}
    bound = [run for run in first_starts(night.runs).values() if run.start_by is not None]
    after = [run for run in bound if run.start_by and night.tempo.calendar_at(run.started_at) > run.start_by]
    late = [run for run in after if run.job not in restarted]
    evidence = tuple(
        f"{run.job} {run.task} started {night_clock(run.started_at, tempo=night.tempo, zone=night.zone)}, "
        f"start_by {clock(run.start_by, night.zone)}"
        for run in late
        if run.start_by
    )
    return check(
        "No first start after start_by",
        evidence,
        good=f"{count(len(bound), 'job')} with a start_by started in time.",
        bad=f"{count(len(late), 'job')} of {len(bound):,} started late.",
        notes=tuple(
            f"{run.job} {run.task} was let start in time; its worker died before it wrote that down"
            for run in after
            if run.job in restarted
        ),
    )


def every_due_occurrence(night: Night) -> Check:
    """Check that each due instant of each entry was recorded exactly once, and nothing else was."""
    recorded = Counter((occurrence.entry, occurrence.due_at) for occurrence in night.occurrences)
    due = set(night.due)
    named = {pair: f"{pair[0]} due {clock(pair[1], night.zone)}" for pair in {*recorded, *due}}
    evidence = (
        *(f"{named[pair]} was not recorded" for pair in sorted(due) if pair not in recorded),
        *(f"{named[pair]} was recorded {times} times" for pair, times in recorded.items() if times > 1),
        *(f"{named[pair]} was recorded and not due" for pair in recorded if pair not in due),
    )
    return check(
        "Every due occurrence is there",
        evidence,
        good=f"All {count(len(due), 'due occurrence')} recorded once.",
        bad=f"{count(len(evidence), 'occurrence')} missing, doubled or not due.",
    )

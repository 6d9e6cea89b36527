"""The report's tables, once, for the terminal and the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from nightshift.report.checks import Report
from nightshift.report.figures import Waits
from nightshift.report.marks import SIGNS, mark_of
from nightshift.report.night import Sweeping
from nightshift.report.strikes import back_after
from nightshift.report.track import note_of
from nightshift.report.wording import clock, count, megabytes, night_clock, seconds
from slackwater import JobState, Occurrence


@dataclass(frozen=True, kw_only=True)
class Table:
    """A caption, how its figures were measured, column heads (numeric ones start with `#`), and rows of text."""

    caption: str
    source: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(report: Report) -> tuple[Table, ...]:
    """Return all tables, in the order of reading; those without rows are left out."""
    made = (
        occurrences(report),
        effects(report),
        jobs(report),
        letters(report),
        lanes(report),
        waits(report),
        sweepings(report),
        strikes(report),
        figures(report),
    )
    return tuple(table for table in made if table.rows)


def occurrences(report: Report) -> Table:
    """List the occurrences by due time."""
    return Table(
        caption="Occurrences",
        source=f"as recorded; times in {report.night.zone.key}",
        heads=("Due", "Entry", "State", "Started", "Ended", "start_by", "Jobs"),
        rows=tuple(
            _occurrence(one, report)
            for one in sorted(report.night.occurrences, key=lambda one: (one.due_at, one.entry))
        ),
    )


def _occurrence(one: Occurrence, report: Report) -> tuple[str, ...]:
    zone, calendar_at = report.night.zone, report.night.tempo.calendar_at
    started, ended = (
        "" if instant is None else clock(calendar_at(instant), zone) for instant in (one.started_at, one.ended_at)
    )
    state = f"{SIGNS[mark_of(one.state)]} {one.state}"
    note = note_of(one) if one.jobs else ""
    return clock(one.due_at, zone), one.entry, state, started, ended, clock(one.start_by, zone), note


def effects(report: Report) -> Table:
    """Say what the night achieved, by our books."""
    books = report.night.books
    unread = books.unread_attachments_left_count
    unreadable = books.unreadable_attachment_count
    rows = [
        ("Accounts synced", f"{books.synced_account_count:,} of {books.account_count:,}"),
        ("Accounts refreshed", f"{books.refreshed_account_count:,} of {books.account_count:,}"),
        ("New transactions", f"{books.new_transaction_count:,}"),
        ("Receipts read", f"{books.read_attachment_count:,} ({unreadable:,} unreadable, {unread:,} left)"),
        ("Runs submitted", f"{books.submitted_run_count:,} ({books.failed_run_count:,} refused)"),
    ]
    if (rates := report.night.accuracy) is not None:
        right = f"totals {rates.total_ratio:.1%}, dates {rates.date_ratio:.1%}, vendors {rates.vendor_ratio:.1%}"
        rows.append(("Read right", f"{right} of {rates.count:,}"))
    return Table(caption="Done", source="counted in the books", heads=("What", "How much"), rows=tuple(rows))


def jobs(report: Report) -> Table:
    """Count the jobs by state, and the lost ones."""
    counts = report.ledger.counts
    rows = [("submitted", f"{report.ledger.submitted:,}", "")]
    for state, number in counts.items():
        rows.append((state.value, f"{number:,}", _more_of(state, report) if number else ""))
    rows.append(("lost", f"{len(report.ledger.lost):,}", "nobody knows where they are" if report.ledger.lost else ""))
    return Table(
        caption="Jobs",
        source="by id: each demanded job where somebody says it is",
        heads=("State", "#Jobs", ""),
        rows=tuple(rows),
    )


def _more_of(state: JobState, report: Report) -> str:
    if state is JobState.EXPIRED:
        return _counted(report.night.expired_reasons)
    if state is JobState.DUPLICATE:
        others = {one.of for one in report.ledger.duplicates if one.of is not None}
        return f"of {count(len(others), 'other job')}, each known by id"
    if state in (JobState.FAILED, JobState.DEAD):
        return _counted(Counter(one.cause for one in report.night.letters if one.state is state))
    return ""


def _counted(causes: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {cause}" for cause, number in causes.items())


def letters(report: Report) -> Table:
    """List the dead letters."""
    return Table(
        caption="Dead letters",
        source="kept whole, until somebody replays or discards them",
        heads=("Job", "Task", "State", "Cause", "#Tries", "#Starts"),
        rows=tuple(
            (one.job, one.task, one.state.value, one.cause, f"{one.tries:,}", f"{one.attempts:,}")
            for one in report.night.letters
        ),
    )


def sweepings(report: Report) -> Table:
    """Say what the sweepers did; those whose last round found nothing share a row."""
    told = [one for one in report.night.sweepings if one.found_count or one.error or one.rescued]
    rows = [(one.sweeper, night_clock_of(one, report), _did(one)) for one in told]
    if quiet := [one for one in report.night.sweepings if one not in told]:
        last = max(quiet, key=lambda one: one.at)
        rows.append((count(len(quiet), "sweeper"), night_clock_of(last, report), "found nothing"))
    return Table(
        caption="Sweepers",
        source="last round of each; what the application's own recovered, all night long",
        heads=("Sweeper", "Last round", "What it did"),
        rows=tuple(rows),
    )


def night_clock_of(one: Sweeping, report: Report) -> str:
    """Write when a sweeper's last round was."""
    return night_clock(one.at, tempo=report.night.tempo, zone=report.night.zone)


def _did(one: Sweeping) -> str:
    parts = [f"failed: {one.error}"] if one.error else []
    if one.found_count:
        parts.append(f"found {one.found_count:,}, recovered {one.recovered_count:,}")
    if one.note:
        parts.append(one.note)
    if one.rescued:
        parts.append(f"recovered this night: {', '.join(one.rescued)}")
    return "; ".join(parts)


def strikes(report: Report) -> Table:
    """List what chaos did, and what became of it."""
    tempo, zone = report.night.tempo, report.night.zone
    return Table(
        caption="Chaos",
        source="strikes at moments drawn from the seed; spans in real time",
        heads=("At", "Whom", "What", "Effect", "Back after"),
        rows=tuple(
            (night_clock(one.at, tempo=tempo, zone=zone), one.target, one.kind.value, one.effect, back_after(one))
            for one in report.night.chaos
        ),
    )


def lanes(report: Report) -> Table:
    """Say what each lane did."""
    return Table(
        caption="Lanes",
        source="peaks by readings; bodies from the workers' own logs",
        heads=("Lane", "#Slots", "#Peak", "#Waiting", "#Oldest", "#Started", "#Ended", "#Expired"),
        rows=tuple(
            (
                one.lane,
                _known(one.slots),
                _known(one.peak_running),
                _known(one.peak_ready),
                seconds(one.peak_oldest_s) if one.peak_oldest_s is not None else "–",
                f"{one.started:,}",
                f"{one.finished:,}",
                f"{one.expired:,}",
            )
            for one in report.figures.lanes
        ),
    )


def _known(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def waits(report: Report) -> Table:
    """Say how long people waited, in real time."""
    measured = (("click to start", report.figures.click_to_start), ("click to answer", report.figures.click_to_answer))
    return Table(
        caption="People's waits",
        source="real time; quantiles of all waits that ended",
        heads=("From", "#Waits", "#p50", "#p95", "#Longest", "#No end"),
        rows=tuple(_wait(name, one) for name, one in measured if one.count or one.unended),
    )


def _wait(name: str, one: Waits) -> tuple[str, ...]:
    return name, f"{one.count:,}", seconds(one.p50_s), seconds(one.p95_s), seconds(one.max_s), f"{one.unended:,}"


def figures(report: Report) -> Table:
    """List the remaining figures with how each was measured."""
    rows = [
        (
            "Bank fan-out",
            f"{seconds(one.observed_s)}, {one.ratio:.2f} x allowed ({seconds(one.allowed_s)})",
            f"{count(one.call_count, 'needed call')} in the world's books; allowed: by its limit and latencies",
        )
        for one in report.figures.fan_outs
        if one.ratio is not None
    ]
    for use in report.night.processes:
        took = f"{megabytes(use.peak_rss_bytes)} at most, {seconds(use.cpu_s)} of a core"
        rows.append((use.name, took, "sampled, with its descendants"))
    return Table(caption="Figures", source="", heads=("What", "Measured", "How"), rows=tuple(rows))

"""The check that nothing took effect twice, by the world's own books."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from urllib.parse import parse_qs

from nightshift.report.check import Check, check
from nightshift.report.night import Night
from nightshift.report.wording import count
from nightshift.world.books import Filing
from nightshift.world.script import PathKind


def nothing_twice(night: Night) -> Check:
    """Check that no run is filed twice, no job synced an account twice, and both sides' books agree.

    A sync whose body was cut off (its worker died) may ask again: that is at-least-once delivery, and a note.
    """
    filed_twice = tuple(_filed_twice(night))
    repeats = _repeated_syncs(night)
    excused = _cut_off_runs(night)
    synced_twice = tuple(line for job, times, line in repeats if times > 1 + excused[job])
    notes = tuple(f"{line}, after its worker died" for job, times, line in repeats if times <= 1 + excused[job])
    apart = (*_unknown_to_us(night), *_unknown_to_the_world(night))
    parts = (
        (filed_twice, "filed twice"),
        (synced_twice, "synced twice by one job"),
        (apart, "in one side's books alone"),
    )
    return check(
        "Nothing twice",
        (*filed_twice, *synced_twice, *apart),
        good=f"{count(len(night.filings), 'filing')} in the world's books, one for each of our runs; no sync repeated.",
        bad=f"{', '.join(f'{len(lines)} {what}' for lines, what in parts if lines)}.",
        notes=notes,
    )


def _filed_twice(night: Night) -> Iterable[str]:
    run_of_key = {filing.key: filing.run_id for filing in night.own_filings}
    run_of_job = {click.job: click.run_id for click in night.clicks}
    by_run: dict[str, list[Filing]] = defaultdict(list)
    for filing in night.filings:
        run = run_of_key.get(filing.idempotency_key, run_of_job.get(filing.job_id or ""))
        by_run[f"key {filing.idempotency_key}" if run is None else f"run {run}"].append(filing)
    for run_name, filings in by_run.items():
        if len(filings) > 1:
            told = ", ".join(f"{filing.filing_id} (key {filing.idempotency_key})" for filing in filings)
            yield f"{run_name} was filed {len(filings)} times: {told}"


def _repeated_syncs(night: Night) -> list[tuple[str, int, str]]:
    first_pages = Counter(
        (call.job_id, call.subject)
        for call in night.calls
        if call.kind is PathKind.TRANSACTIONS
        and call.status == 200
        and call.job_id is not None
        and "continuation_key" not in parse_qs(call.query)
    )
    return [
        (job, times, f"job {job} fetched account {account} {times} times")
        for (job, account), times in first_pages.items()
        if job is not None and times > 1
    ]


def _cut_off_runs(night: Night) -> Counter[str]:
    return Counter(run.job for run in night.runs if run.ended_at is None)


def _unknown_to_us(night: Night) -> Iterable[str]:
    ours = {filing.filing_id for filing in night.own_filings}
    for filing in night.filings:
        if filing.filing_id not in ours:
            yield f"filing {filing.filing_id} (key {filing.idempotency_key}) is in the world's books, not in ours"


def _unknown_to_the_world(night: Night) -> Iterable[str]:
    theirs = {filing.filing_id for filing in night.filings}
    for own in night.own_filings:
        if own.filing_id not in theirs:
            yield f"filing {own.filing_id} of run {own.run_id} is in our books, not in the world's"

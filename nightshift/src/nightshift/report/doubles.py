"""The check that nothing took effect twice, by the world's own books."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from urllib.parse import parse_qs

from nightshift.report.check import Check, check
from nightshift.report.night import Night
from nightshift.report.wording import count
from nightshift.world.books import Call, Filing
from nightshift.world.kinds import PathKind


def nothing_twice(night: Night) -> Check:
    """Check that no run is filed twice, no job fetched an account twice, and both sides' books agree.

    A job whose body was cut off (its worker died) may ask again: that is at-least-once delivery, and a note. What a
    caller did not get whole, and a listing whose continuation key had expired, it must ask for again. In a night of
    chaos so may a body that could not write down what it had fetched, since a server of ours was away or its lease was
    gone: it ended there, and was tried again. In any other night none of that may happen.
    """
    filed_twice = tuple(_filed_twice(night))
    repeats = _repeated_fetches(night)
    excused = _cut_off_runs(night) + _kept_from_writing(night)
    fetched_twice = tuple(line for job, times, line in repeats if times > 1 + excused[job])
    notes = tuple(f"{line}, after {_excuse(job, night)}" for job, times, line in repeats if times <= 1 + excused[job])
    apart = (*_unknown_to_us(night), *_unknown_to_the_world(night))
    parts = (
        (filed_twice, "filed twice"),
        (fetched_twice, "fetched twice by one job"),
        (apart, "in one side's books alone"),
    )
    return check(
        "Nothing twice",
        (*filed_twice, *fetched_twice, *apart),
        good=f"{count(len(night.filings), 'filing')} in the world's books, one for each of our runs; no fetch twice.",
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


def _repeated_fetches(night: Night) -> list[tuple[str, int, str]]:
    fetched = Counter((call.job_id, call.kind, call.subject) for call in night.calls if _opens_a_fetch(call))
    begun_anew = Counter((call.job_id, call.kind, call.subject) for call in night.calls if _expired_key(call))
    times_of = {key: times - begun_anew[key] for key, times in fetched.items()}
    return [
        (job, times, f"job {job} fetched {_FETCHED[kind]}account {account} {times} times")
        for (job, kind, account), times in times_of.items()
        if job is not None and times > 1
    ]


_FETCHED = {PathKind.TRANSACTIONS: "", PathKind.DETAILS: "details of "}
"""What is asked for once a job, and how an offender is told. Both kinds of jobs ask for balances."""


def _opens_a_fetch(call: Call) -> bool:
    is_later_page = "continuation_key" in parse_qs(call.query)
    return call.kind in _FETCHED and call.succeeded and call.job_id is not None and not is_later_page


def _expired_key(call: Call) -> bool:
    return call.kind is PathKind.TRANSACTIONS and call.status == 422 and "continuation_key" in parse_qs(call.query)


def _cut_off_runs(night: Night) -> Counter[str]:
    return Counter(run.job for run in night.runs if run.ended_at is None)


OURS_WAS_AWAY = frozenset(
    {"OperationalError", "StoreUnavailable", "BrokerUnavailable", "PacerUnavailable", "StaleFence"}
)
"""Errors for which a body is tried again that say: it is our side that was away, by a strike."""


def _kept_from_writing(night: Night) -> Counter[str]:
    if not night.chaos:
        return Counter()
    return Counter(run.job for run in night.runs if run.tried_again_for in OURS_WAS_AWAY)


def _excuse(job: str, night: Night) -> str:
    kept = sorted({run.tried_again_for for run in night.runs if run.job == job} & OURS_WAS_AWAY)
    reasons = ["its worker died"] if _cut_off_runs(night)[job] else []
    return " and ".join([*reasons, *kept])


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

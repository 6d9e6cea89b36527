"""The night in three sentences: what was under pressure, what waited, what is for you."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from nightshift.report.checks import Report
from nightshift.report.figures import FanOut, by_lane
from nightshift.report.wording import clock, count, seconds
from slackwater import JobState, OccurrenceState


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A heading of few words, one sentence, more of it, and whether somebody should look."""

    heading: str
    text: str
    detail: str = ""
    is_alarming: bool = False


@dataclass(frozen=True, kw_only=True)
class _Full:
    """How long all slots of a lane were busy while jobs waited (calendar clock), by readings."""

    lane: str
    slots: int
    count: int
    from_at: datetime
    to_at: datetime
    peak_ready: int


def verdict(report: Report) -> str:
    """Say in one line whether the night was good."""
    failing = [check.name for check in report.checks if not check.ok]
    if not failing and _left_over(report):
        return f"All {len(report.checks)} checks hold, but not all work was done."
    if not failing:
        return f"A good night: all {len(report.checks)} checks hold."
    return f"Not a good night: {len(failing)} of {count(len(report.checks), 'check')} fail: {'; '.join(failing)}."


_NOT_RUN = (OccurrenceState.EXPIRED, OccurrenceState.FAILED, OccurrenceState.MISSED)


def _left_over(report: Report) -> bool:
    """Tell whether a job or an occurrence did not do its work; the checks do not mind that, people do."""
    counts = report.ledger.counts
    undone = any(counts[state] for state in JobState if state not in (JobState.DONE, JobState.DUPLICATE))
    return undone or any(one.state in _NOT_RUN for one in report.night.occurrences)


def three_sentences(report: Report) -> tuple[Sentence, Sentence, Sentence]:
    """Say what was under pressure, what waited, and what is for you."""
    return _pressure(report), _waited(report), _for_you(report)


def _pressure(report: Report) -> Sentence:
    full = _longest_full(report)
    detail = _fan_out_detail(report.figures.fan_outs)
    if full is None:
        return Sentence(
            heading="Under pressure: nothing", text="No lane was ever full while jobs waited.", detail=detail
        )
    zone = report.night.zone
    return Sentence(
        heading=f"Under pressure: {full.lane}",
        text=f"{_slots_busy(full.slots)} from {clock(full.from_at, zone)} to {clock(full.to_at, zone)}, "
        f"with up to {count(full.peak_ready, 'job')} waiting.",
        detail=detail,
    )


def _slots_busy(slots: int) -> str:
    return "Its one slot was busy" if slots == 1 else f"All {slots:,} slots were busy"


def _longest_full(report: Report) -> _Full | None:
    found = []
    for lane, readings in by_lane(report.night.readings).items():
        full = [one for one in readings if one.running and one.slots and one.ready and one.running >= one.slots]
        if full:
            calendar_at = report.night.tempo.calendar_at
            found.append(
                _Full(
                    lane=lane,
                    slots=full[-1].slots or 0,
                    count=len(full),
                    from_at=calendar_at(full[0].at),
                    to_at=calendar_at(full[-1].at),
                    peak_ready=max(one.ready or 0 for one in full),
                )
            )
    return max(found, key=lambda full: full.count, default=None)


def _fan_out_detail(fan_outs: tuple[FanOut, ...]) -> str:
    longest = max(fan_outs, key=lambda one: one.observed_s, default=None)
    if longest is None or longest.ratio is None:
        return ""
    return (
        f"The bank fan-out took {seconds(longest.observed_s)} of real time, {longest.ratio:.2f} x what "
        "the aggregator's rate limit and latencies allow."
    )


def _waited(report: Report) -> Sentence:
    waits = report.figures.click_to_start
    if not waits.count:
        text = "Nobody submitted anything." if not waits.unended else "No submission ever started."
        return Sentence(heading="People", text=text, is_alarming=bool(waits.unended))
    unanswered = report.figures.click_to_answer.unended
    told = "Everybody got an answer." if not unanswered else f"{count(unanswered, 'person', 'people')} got no answer."
    if waits.unended:
        told = f"{count(waits.unended, 'submission')} never started. {told}"
    answer = f" Half had it within {seconds(report.figures.click_to_answer.p50_s)} of their click."
    return Sentence(
        heading=f"People waited {seconds(waits.p95_s)}",
        text=f"{count(waits.count, 'submission')} started {seconds(waits.p95_s)} after the click (p95), "
        f"the slowest after {seconds(waits.max_s)}.",
        detail=told + answer,
        is_alarming=bool(unanswered or waits.unended),
    )


def _for_you(report: Report) -> Sentence:
    things = for_you(report)
    if not things:
        return Sentence(heading="For you: nothing", text="Nothing is left for you to do.", detail="Good morning.")
    failing = any(not check.ok for check in report.checks)
    return Sentence(
        heading=f"For you: {count(len(things), 'thing')}",
        text=things[0],
        detail=" ".join(things[1:]),
        is_alarming=failing or bool(_ended_badly(report)),
    )


def for_you(report: Report) -> tuple[str, ...]:
    """List what a person should look at, the gravest first."""
    checks = tuple(f"“{check.name}” does not hold: {check.summary}" for check in report.checks if not check.ok)
    return (*checks, *_ended_badly(report), *_consents(report), *_not_run(report))


def _ended_badly(report: Report) -> tuple[str, ...]:
    counts = report.ledger.counts
    failed = counts[JobState.FAILED]
    dead = counts[JobState.DEAD]
    parts = [f"{count(failed, 'job')} failed"] if failed else []
    parts += [f"{count(dead, 'job')} dead"] if dead else []
    causes = Counter(one.cause for one in report.night.letters)
    why = f" ({', '.join(f'{number:,} {cause}' for cause, number in causes.items())})" if causes else ""
    return (f"{' and '.join(parts)}{why}; the rest of the night went on.",) if parts else ()


def _consents(report: Report) -> tuple[str, ...]:
    needed = report.night.books.consent_needed_count
    if not needed:
        return ()
    need = "needs" if needed == 1 else "need"
    return (f"{count(needed, 'account')} {need} a new consent; ask the customers for it.",)


def _not_run(report: Report) -> tuple[str, ...]:
    gone = (OccurrenceState.EXPIRED, OccurrenceState.MISSED)
    zone = report.night.zone
    return tuple(
        f"{one.entry} of {clock(one.due_at, zone)} {'expired' if one.state is gone[0] else 'was missed'}; "
        "its next occurrence takes over."
        for one in report.night.occurrences
        if one.state in gone
    )

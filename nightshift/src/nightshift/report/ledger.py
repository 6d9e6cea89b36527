"""Nothing lost, by id: each demanded job is in exactly one state, and somebody says so.

No term is found by subtraction: a state's count is the number of ids that a claim puts there, and `lost` lists
the ids that no claim puts anywhere.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from nightshift.report.night import Claim, Claimant, Demand
from slackwater import JobState

_EXACTER = {
    JobState.EXPIRED: {JobState.REVOKED},
    JobState.DEAD: {JobState.FAILED},
    JobState.DUPLICATE: {JobState.REVOKED, JobState.DONE},
}
"""Our states for which Celery has only a coarser word, so the result backend says that one beside them. A duplicate of
what is done has that one's result, and says done."""

_WORST_FIRST = (
    JobState.DEAD,
    JobState.FAILED,
    JobState.REVOKED,
    JobState.EXPIRED,
    JobState.DUPLICATE,
    JobState.DONE,
)
"""Where two endings contradict each other, the worse one is counted: a report must not flatter."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a job is: its state, or None where no claim puts it anywhere; and why."""

    state: JobState | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class Lost:
    """A demanded job that is nowhere, and what was said of it nonetheless."""

    demand: Demand
    reason: str


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """A job with more than one ending: the claims."""

    demand: Demand
    claims: tuple[Claim, ...]


@dataclass(frozen=True, kw_only=True)
class Duplicate:
    """A job whose work another job does or did.

    Attributes:
        job: Its id.
        of: The other's id, as the store has it; None where nobody says.
        is_placed: Somebody says where the other one is.
    """

    job: str
    of: str | None
    is_placed: bool


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """The night's jobs, settled.

    Attributes:
        submitted: Demanded ids.
        places: State by job id, for each one that has a place.
        counts: Jobs by state, for all states.
        lost: Demanded jobs without a place.
        contradictions: Jobs with more than one ending.
        duplicates: Jobs that ended as duplicates, each with the job that it is one of.
        undemanded: Ids that somebody claims and nobody demanded (a publish whose confirmation never came).
    """

    submitted: int
    places: Mapping[str, JobState]
    counts: Mapping[JobState, int]
    lost: tuple[Lost, ...]
    contradictions: tuple[Contradiction, ...]
    duplicates: tuple[Duplicate, ...]
    undemanded: tuple[str, ...]


def settle(demands: Iterable[Demand], claims: Iterable[Claim]) -> Ledger:
    """Put each demanded job into one state.

    Args:
        demands: What was asked for; an id that is demanded twice is one job.
        claims: What is said of jobs, by any number of claimants.
    """
    said: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        said[claim.job].append(claim)
    asked: dict[str, Demand] = {}
    for demand in demands:
        asked.setdefault(demand.job, demand)
    settled = {job: place(said.get(job, ())) for job in asked}
    places = {job: found.state for job, found in settled.items() if found.state is not None}
    counted = Counter(places.values())
    named = {claim.of for claim in chain.from_iterable(said.values())}
    return Ledger(
        submitted=len(asked),
        places=places,
        counts={state: counted[state] for state in JobState},
        lost=tuple(
            Lost(demand=asked[job], reason=found.reason) for job, found in settled.items() if found.state is None
        ),
        contradictions=tuple(
            Contradiction(demand=asked[job], claims=tuple(said[job]))
            for job in asked
            if len(_endings(said.get(job, ()))) > 1
        ),
        duplicates=tuple(_duplicate(job, said) for job, state in sorted(places.items()) if state is JobState.DUPLICATE),
        undemanded=tuple(sorted(job for job in said if job not in asked and job not in named)),
    )


def _duplicate(job: str, said: Mapping[str, Sequence[Claim]]) -> Duplicate:
    of = next((claim.of for claim in said[job] if claim.of is not None), None)
    is_placed = of is not None and of != job and place(said.get(of, ())).state is not None
    return Duplicate(job=job, of=of, is_placed=is_placed)


def place(claims: Iterable[Claim]) -> Place:
    """Decide in which one state a job is, from all that is said of it.

    In this order, since each later one may truly stand beside an earlier one:

    1. an ending: at-least-once delivery leaves copies in queues, and a late release leaves a hold;
    2. running: a message that is delivered and not acknowledged, of which a start is told;
    3. queued: a message that waits, or is delivered and not started; whatever a result says of an earlier start;
    4. held: a row in the store, of which no message exists yet.

    A start told by the result backend alone is no place: without a message nobody will run it to its end.
    """
    claims = tuple(claims)
    if endings := _endings(claims):
        return _ended(endings)
    told_started = any(claim.state is JobState.RUNNING for claim in claims)
    by = {claim.claimant: claim for claim in claims}
    if Claimant.UNACKNOWLEDGED in by and told_started:
        return Place(state=JobState.RUNNING, reason="delivered, started and not acknowledged")
    for claimant, state in _OPEN_PLACES.items():
        if (claim := by.get(claimant)) is not None:
            return Place(state=state, reason=" ".join(part for part in (claimant.value, claim.detail) if part))
    return Place(state=None, reason=_why_nowhere(claims))


_OPEN_PLACES = {
    Claimant.UNACKNOWLEDGED: JobState.QUEUED,
    Claimant.QUEUE: JobState.QUEUED,
    Claimant.HOLDS: JobState.HELD,
}


def _endings(claims: Iterable[Claim]) -> frozenset[JobState]:
    ends = {claim.state for claim in claims if claim.state.final}
    return frozenset(ends - {coarser for end in ends for coarser in _EXACTER.get(end, ())})


def _ended(endings: frozenset[JobState]) -> Place:
    worst = next(state for state in _WORST_FIRST if state in endings)
    reason = f"ended as {worst}" if len(endings) == 1 else f"told to have ended as {' and '.join(sorted(endings))}"
    return Place(state=worst, reason=reason)


def _why_nowhere(claims: tuple[Claim, ...]) -> str:
    if not claims:
        return "no ending, no message, no hold"
    told = ", ".join(sorted(f"{claim.claimant} says {claim.state}" for claim in claims))
    return f"{told}, but there is no message of it in the broker"

"""The check that nothing was lost."""

from __future__ import annotations

from collections.abc import Iterable

from nightshift.report.check import Check, check
from nightshift.report.ledger import Contradiction, Duplicate, Ledger, Lost
from nightshift.report.night import Night
from nightshift.report.wording import count, night_clock


def nothing_lost(night: Night, ledger: Ledger) -> Check:
    """Check that each demanded job is in exactly one state; lost and contradictory ones are the evidence.

    So is a duplicate of a job that is nowhere: its work is lost, though it has ended itself.
    """
    evidence = (
        *(_lost(one, night) for one in ledger.lost),
        *(_contradiction(one) for one in ledger.contradictions),
        *(_duplicate_of_nothing(one) for one in ledger.duplicates if not one.is_placed),
    )
    notes = (
        *(f"{job}: somebody knows it, and no publish of it was confirmed" for job in ledger.undemanded),
        *_restarts(night),
    )
    return check(
        "Nothing lost",
        evidence,
        good=f"Each of {count(ledger.submitted, 'demanded job')} is in exactly one place.",
        bad=_bad(ledger),
        notes=notes,
    )


def _bad(ledger: Ledger) -> str:
    parts = []
    if ledger.lost:
        parts.append(f"{count(len(ledger.lost), 'job')} of {ledger.submitted:,} lost")
    if ledger.contradictions:
        parts.append(f"{count(len(ledger.contradictions), 'job')} with more than one ending")
    if orphans := sum(not one.is_placed for one in ledger.duplicates):
        parts.append(f"{count(orphans, 'duplicate')} of a job that is nowhere")
    return f"{' and '.join(parts)}."


def _restarts(night: Night) -> Iterable[str]:
    """Say which jobs were started again, and why: theirs is no loss, and nobody has to do anything."""
    for is_childs in (True, False):
        those = [one for one in night.restarts if one.is_childs is is_childs]
        if those:
            were = "was" if len(those) == 1 else "were"
            whose = "its" if len(those) == 1 else "their"
            died = "worker's child died" if is_childs else "worker died"
            named = ", ".join(f"{one.task} {one.job} ({one.starts} starts)" for one in those)
            yield f"{count(len(those), 'job')} {were} started again: {whose} {died}: {named}"


def _duplicate_of_nothing(one: Duplicate) -> str:
    return f"{one.job} ended as a duplicate of {one.of or 'nobody knows what'}, which is nowhere"


def _lost(lost: Lost, night: Night) -> str:
    demand = lost.demand
    at = night_clock(demand.at, tempo=night.tempo, zone=night.zone)
    return f"{demand.job} {demand.task} in {demand.lane}, demanded by {demand.source} at {at}: {lost.reason}"


def _contradiction(found: Contradiction) -> str:
    told = ", ".join(f"{claim.claimant} says {claim.state}" for claim in found.claims)
    return f"{found.demand.job} {found.demand.task}: {told}"

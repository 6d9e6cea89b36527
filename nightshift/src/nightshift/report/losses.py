"""The check that nothing was lost."""

from __future__ import annotations

from nightshift.report.check import Check, check
from nightshift.report.ledger import Contradiction, Ledger, Lost
from nightshift.report.night import Night
from nightshift.report.wording import count, night_clock


def nothing_lost(night: Night, ledger: Ledger) -> Check:
    """Check that each demanded job is in exactly one state; lost and contradictory ones are the evidence."""
    evidence = (
        *(_lost(one, night) for one in ledger.lost),
        *(_contradiction(one) for one in ledger.contradictions),
    )
    notes = tuple(f"{job}: somebody knows it, and no publish of it was confirmed" for job in ledger.undemanded)
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
    return f"{' and '.join(parts)}."


def _lost(lost: Lost, night: Night) -> str:
    demand = lost.demand
    at = night_clock(demand.at, tempo=night.tempo, zone=night.zone)
    return f"{demand.job} {demand.task} in {demand.lane}, demanded by {demand.source} at {at}: {lost.reason}"


def _contradiction(found: Contradiction) -> str:
    told = ", ".join(f"{claim.claimant} says {claim.state}" for claim in found.claims)
    return f"{found.demand.job} {found.demand.task}: {told}"

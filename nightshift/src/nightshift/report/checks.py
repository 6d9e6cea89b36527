"""The morning's verdict: settle the ledger, run each check, measure the figures."""

from __future__ import annotations

from dataclasses import dataclass

from nightshift.report.check import Check
from nightshift.report.doubles import nothing_twice
from nightshift.report.figures import Figures, measure
from nightshift.report.ledger import Ledger, settle
from nightshift.report.losses import nothing_lost
from nightshift.report.night import Night
from nightshift.report.people import no_person_behind_a_batch
from nightshift.report.timeliness import every_due_occurrence, no_late_first_start


@dataclass(frozen=True, kw_only=True)
class Report:
    """A night, judged.

    Attributes:
        night: What is known of it.
        ledger: Its jobs, settled.
        checks: What had to hold.
        twice: How many effects there are too many, or in one side's books alone.
        figures: What was measured.
    """

    night: Night
    ledger: Ledger
    checks: tuple[Check, ...]
    twice: int
    figures: Figures

    @property
    def ok(self) -> bool:
        """Tell whether every check holds."""
        return all(check.ok for check in self.checks)


def run_checks(night: Night) -> Report:
    """Judge a night; pure, so the same night always gives the same report."""
    ledger = settle(night.demands, night.claims)
    twice = nothing_twice(night)
    checks = (
        nothing_lost(night, ledger),
        twice,
        no_person_behind_a_batch(night),
        no_late_first_start(night),
        every_due_occurrence(night),
    )
    figures = measure(night, ledger)
    return Report(night=night, ledger=ledger, checks=checks, twice=len(twice.evidence), figures=figures)

"""A check of the night: whether it holds, and the evidence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that had to hold.

    Attributes:
        name: What had to hold, as a short sentence.
        ok: Whether it does.
        summary: What was found, as a sentence.
        evidence: The offenders one by one; empty where there is none.
        notes: What is worth knowing and no offence.
    """

    name: str
    ok: bool
    summary: str
    evidence: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def check(name: str, evidence: tuple[str, ...], *, good: str, bad: str, notes: tuple[str, ...] = ()) -> Check:
    """Make a check that holds if there is no evidence against it; `good` or `bad` becomes its summary."""
    return Check(name=name, ok=not evidence, summary=bad if evidence else good, evidence=evidence, notes=notes)

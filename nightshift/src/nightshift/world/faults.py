"""The script of faults: which calls meet which fault, and when. Read from a file, checked when it is read.

A file is a JSON object with one list, `faults`; the first rule that hits a call decides (a slow call may meet one
more). For example: from the 20th to the 30th second nine in ten balances are throttled for 2 seconds, and the first
submission of each filing is accepted and not answered.

    {"faults": [
        {"fault": "scripted_429", "kinds": ["balances"], "ratio": 0.9, "from_s": 20, "to_s": 30, "retry_after_s": 2},
        {"fault": "lost_answer", "kinds": ["filing_submit"], "asks": [0]}
    ]}
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from nightshift.world.kinds import AGGREGATOR_KINDS, Fault, PathKind

SCRIPTABLE = frozenset(Fault) - {Fault.RATE_LIMIT}
_FILINGS = frozenset({PathKind.FILING_SUBMIT, PathKind.FILING_LOOKUP})
_PAGES = frozenset({PathKind.TRANSACTIONS})
_ONLY = {
    Fault.REPEATED_PAGE: _PAGES,
    Fault.ENDLESS_PAGE: _PAGES,
    Fault.CONSENT_ENDED: AGGREGATOR_KINDS,
}


class FaultScriptError(ValueError):
    """A script of faults cannot be read; the sentence says where, why, and the remedy."""


@dataclass(frozen=True, kw_only=True)
class FaultRule:
    """One line of the script.

    Attributes:
        fault: What happens.
        kinds: To which endpoints; by default all to which it can happen.
        ratio: To which share of their calls, drawn by (seed, rule, endpoint, subject, ask), in [0, 1].
        subjects: To which accounts or idempotency keys alone; None for all.
        asks: To which repeats of a call alone, 0 being the first; None for all.
        from_s: Not before so many seconds after the world began to serve.
        to_s: Not from then on.
        status: HTTP status of a `scripted_429` (always 429) or `scripted_5xx` (503 unless another 5xx is given).
        retry_after_s: `Retry-After` of those two, whole seconds; None sends none.
        factor: Of a `slow` call's latency.

    Raises:
        FaultScriptError: A value is outside its range, or the fault cannot happen there.
    """

    fault: Fault
    kinds: frozenset[PathKind] = frozenset()
    ratio: float = 1.0
    subjects: frozenset[str] | None = None
    asks: frozenset[int] | None = None
    from_s: float = 0.0
    to_s: float = float("inf")
    status: int = 503
    retry_after_s: int | None = None
    factor: float = 2.0

    def __post_init__(self) -> None:
        possible = _ONLY.get(self.fault, AGGREGATOR_KINDS | _FILINGS)
        object.__setattr__(self, "kinds", self.kinds or possible)
        if self.fault is Fault.SCRIPTED_429:
            object.__setattr__(self, "status", 429)
        self._refuse(self.fault not in SCRIPTABLE, "the rate limit is no fault of a script")
        self._refuse(not self.kinds <= possible, f"it can happen to {', '.join(sorted(possible))} alone")
        self._refuse(not 0 <= self.ratio <= 1, f"ratio {self.ratio} must be in [0, 1]")
        self._refuse(not 0 <= self.from_s < self.to_s, f"its window from {self.from_s} s to {self.to_s} s is empty")
        self._refuse(self.fault is Fault.SCRIPTED_5XX and not 500 <= self.status <= 599, f"{self.status} is no 5xx")
        self._refuse(not self.factor > 0, f"factor {self.factor} must be above 0")
        self._refuse((self.retry_after_s or 0) < 0, f"retry_after_s {self.retry_after_s} must not be negative")

    def _refuse(self, is_wrong: bool, why: str) -> None:
        if is_wrong:
            raise FaultScriptError(f"fault {self.fault}: {why}")


def hits(rule: FaultRule, kind: PathKind, *, subject: str, ask: int, at_s: float, chance: float) -> bool:
    """Decide whether a rule hits a call.

    Args:
        rule: The rule.
        kind: Endpoint.
        subject: Account id, or idempotency key.
        ask: How often this endpoint was asked for this subject before, from 0.
        at_s: Seconds since the world began to serve.
        chance: Number in [0, 1), drawn for this rule and call.
    """
    return (
        kind in rule.kinds
        and (rule.subjects is None or subject in rule.subjects)
        and (rule.asks is None or ask in rule.asks)
        and rule.from_s <= at_s < rule.to_s
        and chance < rule.ratio
    )


def read_faults(path: Path) -> tuple[FaultRule, ...]:
    """Read a script from a file.

    Raises:
        FaultScriptError: It is not there, or no script.
    """
    try:
        return tuple(_rule(one) for one in json.loads(path.read_text(encoding="utf-8"))["faults"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else error
        raise FaultScriptError(f"script of faults {path}: {why}; see nightshift.world.faults") from error


def _rule(told: Mapping[str, Any]) -> FaultRule:
    known = {one.name for one in fields(FaultRule)}
    for name in told:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1) or sorted(known)
            raise ValueError(f"{name!r} is no part of a rule, perhaps {near[0]!r}")
    sets: dict[str, Any] = {name: frozenset(told[name]) for name in ("subjects", "asks") if told.get(name) is not None}
    kinds = frozenset(PathKind(kind) for kind in told.get("kinds", ()))
    return FaultRule(**{**told, **sets, "fault": Fault(told["fault"]), "kinds": kinds})

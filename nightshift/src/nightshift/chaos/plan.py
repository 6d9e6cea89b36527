"""Which strikes a night has to bear, drawn from its seed beforehand. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from nightshift.chaos.strike import ON_LINKS, Strike, StrikeKind

EVERY = timedelta(seconds=4)
"""One strike in so much of the night, on average."""
FEWEST, MOST = 4, 60
FIRST = timedelta(seconds=1)
BETWEEN = timedelta(seconds=3)
"""Peace for a target after it was let be: it is coming back."""
ENDS_IN_ORDER_WITHIN = timedelta(seconds=6)
"""A process that is told to end (SIGTERM) is away for about so long more than its strike says."""
DRAWS = 40
"""How often a moment is drawn for a strike before it is left out: all of them may be taken."""

AWAY_S = (0.2, 6.0)
STALLED_S = (0.5, 6.0)
STOPPED_S = ((1.0, 3.0), (6.5, 9.0), (17.0, 20.0), (37.0, 40.0))
"""Shorter than a presence lives (5 s), longer than that, longer than a lease lives (15 s), and longer than a stopped
worker counts among the living (35 s)."""
STOPPED_WEIGHTS = (4, 4, 3, 1)
LONGEST_SHARE = 0.7
"""No strike lasts for more of the night than this."""


@dataclass(frozen=True, kw_only=True)
class Cast:
    """Who can be struck, by name.

    Attributes:
        workers: Worker processes.
        forking: Those of them whose pool has children.
        balancers: Balancer processes.
        servers: Servers of the night's own; those that are given are not in it, and never killed.
        links: Links to servers.
    """

    workers: tuple[str, ...]
    forking: tuple[str, ...] = ()
    balancers: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


Act = tuple[StrikeKind, str]


def draw(cast: Cast, *, seed: int, span: timedelta) -> tuple[Strike, ...]:
    """Draw a night's strikes: each act comes before any comes again, at uniformly drawn moments.

    No target is struck while it is away, and every strike ends before the night does.

    Args:
        cast: Who can be struck.
        seed: Chance; the same seed draws the same strikes.
        span: The night's length, run clock.

    Returns:
        By moment.
    """
    chance = random.Random(f"chaos:{seed}")
    acts = acts_of(cast)
    wanted = min(MOST, max(FEWEST, round(span / EVERY)))
    drawn: list[Strike] = []
    deck: list[Act] = []
    for _ in range(wanted if acts else 0):
        if not deck:
            deck = chance.sample(acts, len(acts))
        if (strike := _strike(deck.pop(), drawn, chance, span)) is not None:
            drawn.append(strike)
    return tuple(sorted(drawn, key=lambda one: (one.moment, one.target)))


def acts_of(cast: Cast) -> list[Act]:
    """Return all that can be done, and to whom."""
    ends = (StrikeKind.KILL, StrikeKind.FREEZE)
    return [
        *((kind, worker) for worker in cast.workers for kind in (*ends, StrikeKind.RESTART)),
        *((StrikeKind.KILL_CHILD, worker) for worker in cast.forking),
        *((kind, balancer) for balancer in cast.balancers for kind in ends),
        *((StrikeKind.KILL, server) for server in cast.servers),
        *((kind, link) for link in cast.links for kind in sorted(ON_LINKS)),
    ]


def _strike(act: Act, drawn: Sequence[Strike], chance: random.Random, span: timedelta) -> Strike | None:
    kind, target = act
    lasts = _lasts(kind, chance, longest=span * LONGEST_SHARE)
    room = (span - FIRST - lasts).total_seconds()
    others = [one for one in drawn if one.target == target]
    for _ in range(DRAWS if room >= 0 else 0):
        moment = FIRST + timedelta(seconds=round(chance.uniform(0, room), 3))
        strike = Strike(moment=moment, kind=kind, target=target, lasts=lasts)
        if strike.ends <= span and not any(_collide(strike, other) for other in others):
            return strike
    return None


def _lasts(kind: StrikeKind, chance: random.Random, *, longest: timedelta) -> timedelta:
    if kind in (StrikeKind.KILL_CHILD, StrikeKind.DROP):
        return timedelta(0)
    bounds = STALLED_S if kind is StrikeKind.STALL else AWAY_S
    if kind is StrikeKind.FREEZE:
        fitting = [one for one in STOPPED_S if one[1] <= longest.total_seconds()] or [STOPPED_S[0]]
        [bounds] = chance.choices(fitting, weights=STOPPED_WEIGHTS[: len(fitting)])
    return min(longest, timedelta(seconds=round(chance.uniform(*bounds), 3)))


def _collide(one: Strike, other: Strike) -> bool:
    first, later = sorted((one, other), key=lambda strike: strike.moment)
    return later.moment < first.ends + _peace_after(first.kind)


def _peace_after(kind: StrikeKind) -> timedelta:
    return BETWEEN + (ENDS_IN_ORDER_WITHIN if kind is StrikeKind.RESTART else timedelta(0))

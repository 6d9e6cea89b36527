"""The sweeper of bundles: groups and chords that cannot complete any more are closed, with the missing jobs named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple, Protocol

import structlog

from slackwater.core.bundle import (
    Bundle,
    Link,
    Member,
    Missing,
    Over,
    Seen,
    Standing,
    judge,
    reason_of,
    stuck_at,
    unended,
)
from slackwater.core.job import JobState
from slackwater.core.sweep import Sweep
from slackwater.engine.observing import Observer
from slackwater.errors import BrokerUnavailable, StoreUnavailable
from slackwater.ports import Clock, Results, Store

log = structlog.get_logger("slackwater.sweepers")
NAME = "stuck bundles"
PAGE = 500


class EndBundles(Protocol):
    """Tells the result backend what nobody else will."""

    def end_member(self, bundle: Bundle, member: Member, unended: Sequence[Link], *, stuck: str) -> None:
        """End a member as failed, with those jobs of its chain that have no end; its chord counts it.

        Args:
            bundle: Whose.
            member: It.
            unended: Those jobs, its own included.
            stuck: Where it got stuck.
        """
        ...

    def end_body(self, bundle: Bundle, reason: str) -> None:
        """End a chord's body as failed."""
        ...


class _Spot(NamedTuple):
    """What is watched: a member of a bundle, or its body; named by the job whose end counts."""

    bundle: str
    job: str


@dataclass(kw_only=True)
class StuckBundles:
    """Closes groups and chords that cannot complete; any number of processes may do it.

    A job that is nowhere at one look may be on its way: it is missing only once this process has seen it nowhere for
    long, without a gap. To end a job twice changes nothing, as its chord counts it once.

    Attributes:
        store: Which bundles are open; what it will start again.
        results: How jobs stand.
        placed: Returns all that the broker has; None where it cannot tell; see `Whereabouts.placed`.
        ends: Tells the result backend.
        clock: The two clocks.
        lives_for: Length of the amnesty after an outage; a longer gap between two looks is one.
        missing_after: For how long a job must have been seen nowhere (run clock). Younger bundles are not looked at.
        grace: How long after `start_by` (calendar clock) the last endings may still be told.
    """

    store: Store
    results: Results
    placed: Callable[[], frozenset[str] | None]
    ends: EndBundles
    clock: Clock
    lives_for: timedelta
    missing_after: timedelta
    grace: timedelta
    _open: dict[str, Bundle] = field(default_factory=dict, init=False)
    _ended: dict[str, JobState] = field(default_factory=dict, init=False)
    _observer: Observer[_Spot] = field(init=False)

    def __post_init__(self) -> None:
        self._observer = Observer(lives_for=self.lives_for)

    def sweep(self) -> Sweep:
        """Do one round.

        Raises:
            StoreUnavailable, BrokerUnavailable: What is needed does not answer; observing starts anew.
        """
        try:
            seen, standings = self._look()
        except (StoreUnavailable, BrokerUnavailable):
            self._observer.interrupt()
            raise
        self._close([one.id for one, standing in standings if isinstance(standing, Over)])
        stuck = [(one, standing) for one, standing in standings if isinstance(standing, Missing)]
        reasons = [self._end(one, missing, seen.states) for one, missing in self._for_long(stuck)]
        told = [reason for reason in reasons if reason]
        pardon = self._observer.amnesty(now=self.clock.run())
        note = told[0] if told else "" if pardon is None else f"nobody is judged until {pardon.until:%H:%M:%S}"
        return Sweep(
            sweeper=NAME, at=self.clock.run(), found_count=len(told), recovered_count=len(told), note=note[:500]
        )

    def _look(self) -> tuple[Seen, Sequence[tuple[Bundle, Standing]]]:
        self._learn()
        # Most complete soon: those cost no look at the broker, which may have to list what waits.
        old_since = self.clock.run() - self.missing_after
        bundles = [one for one in self._open.values() if one.noted_at <= old_since]
        seen = self._seen(bundles)
        return seen, [(one, judge(one, seen)) for one in bundles]

    def _learn(self) -> None:
        """Read what has been noted, and forget what others have closed; what is known to be whole is not read again."""
        ids = self.store.bundles.open()
        self._open = {one: self._open[one] for one in ids if one in self._open and self._open[one].whole}
        new = [one for one in ids if one not in self._open]
        for start in range(0, len(new), PAGE):
            self._open |= {one.id: one for one in self.store.bundles.find(new[start : start + PAGE])}

    def _seen(self, bundles: Sequence[Bundle]) -> Seen:
        jobs = list(dict.fromkeys(job for one in bundles for job in one.jobs))
        states = self._states(jobs)
        waited_for = [job for job in jobs if job not in self._ended]
        publishers = [one.publisher for one in bundles if one.publisher is not None]
        bodies = {link.job for one in self._open.values() if one.body is not None for link in one.body.links}
        return Seen(
            states=states,
            kept=frozenset(self._kept([*waited_for, *publishers])) | self._awaited(bundles, bodies),
            # Asked last: what was published meanwhile is seen. And not at all where nothing is waited for.
            placed=self.placed() if waited_for else None,
            run=self.clock.run(),
            calendar=self.clock.calendar(),
            grace=self.grace,
        )

    def _states(self, jobs: Sequence[str]) -> Mapping[str, JobState]:
        known = set(jobs)
        # A job that has ended is not asked for again: its result may be gone before its bundle's last job ends.
        self._ended = {job: state for job, state in self._ended.items() if job in known}
        asked = self.results.states([job for job in jobs if job not in self._ended])
        self._ended |= {job: state for job, state in asked.items() if state.final}
        return {**asked, **self._ended}

    def _kept(self, jobs: Sequence[str]) -> Iterable[str]:
        for start in range(0, len(jobs), PAGE):
            page = jobs[start : start + PAGE]
            yield from self.store.holds.find(page)
            yield from self.store.runs.under_way(page)

    def _awaited(self, bundles: Sequence[Bundle], bodies: set[str]) -> frozenset[str]:
        """Return the jobs of members that are bodies of other bundles: these are open, and are judged first."""
        return frozenset(link.job for one in bundles for each in one.members for link in each.links) & bodies

    def _for_long(self, stuck: Sequence[tuple[Bundle, Missing]]) -> Sequence[tuple[Bundle, Missing]]:
        spots = {spot for one, missing in stuck for spot in _spots(one, missing)}
        spans = self._observer.look(spots, now=self.clock.run())
        long = {spot for spot, span in spans.items() if span >= self.missing_after}
        found = []
        for one, missing in stuck:
            if not missing.members and long.issuperset(_spots(one, missing)):
                found.append((one, missing))
            elif members := tuple(each for each in missing.members if _Spot(one.id, each.job) in long):
                found.append((one, Missing(members)))
        return found

    def _end(self, one: Bundle, missing: Missing, states: Mapping[str, JobState]) -> str:
        reason = reason_of(one, missing, states)
        if not self.store.bundles.blame(one.id, reason):
            return ""
        for member in missing.members:
            self.ends.end_member(one, member, unended(member, states), stuck=stuck_at(member, states))
        if not missing.members:
            self.ends.end_body(one, reason)
        log.error("cannot complete", bundle=one.id, kind=one.kind, reason=reason)
        return f"{one.kind} {one.id}: {reason}"

    def _close(self, ids: Sequence[str]) -> None:
        if ids:
            self.store.bundles.close(ids, at=self.clock.run())
            for one in ids:
                del self._open[one]


def _spots(one: Bundle, missing: Missing) -> list[_Spot]:
    jobs = [member.job for member in missing.members]
    if not jobs and one.body is not None:
        jobs = [one.body.job]
    return [_Spot(one.id, job) for job in jobs]

"""The sweeper of dead workers: what they had in their hands goes back, and their leases end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

import structlog

from slackwater.core.liveness import Owner, Verdict, is_dead, last_sign
from slackwater.core.reading import Presence
from slackwater.core.sweep import Sweep
from slackwater.engine.observing import Looks
from slackwater.errors import BrokerUnavailable, StoreUnavailable
from slackwater.ports import Clock, PresenceStore, Recovery

log = structlog.get_logger("slackwater.sweepers")
NAME = "dead workers"


class Leases(Protocol):
    """The one act of the run store that is needed here."""

    def lapse_all(self, boot: UUID) -> None:
        """End all leases of a worker process that is dead."""
        ...


@dataclass(frozen=True, kw_only=True)
class DeadWorker:
    """A worker process that was judged dead.

    Attributes:
        owner: Which.
        reason: Why.
        unacked_count: Messages that it had in its hands when it was looked at.
    """

    owner: Owner
    reason: str
    unacked_count: int


@dataclass(kw_only=True)
class _Sign:
    """The latest sign of life that was seen of a worker process."""

    said_at: datetime | None
    at: datetime
    lives_for: timedelta


@dataclass(kw_only=True)
class DeadWorkers:
    """Finds dead worker processes and recovers their jobs; any number of processes may do it at once.

    Silence is measured by what this process itself has seen: a row that has not changed for its time-to-live. So it
    needs to have looked for that long, and starts anew after each time in which it could not look (the store or the
    broker was away, or it was stopped itself).
    """

    presence: PresenceStore
    recovery: Recovery
    leases: Leases
    clock: Clock
    lives_for: timedelta
    frozen_after: timedelta
    itself: Callable[[], Owner | None] = lambda: None
    """The worker process that this sweeper lives in, which it does not judge; None for none."""
    _signs: dict[Owner, _Sign] = field(default_factory=dict, init=False)
    _looks: Looks = field(init=False)

    def __post_init__(self) -> None:
        self._looks = Looks(lives_for=self.lives_for)

    def sweep(self) -> Sweep:
        """Do one round: find, and act on what is found.

        Raises:
            StoreUnavailable, BrokerUnavailable: What is needed does not answer; the next round finds the same.
        """
        found = self.find()
        recovered = self.act(found)
        pardon = self._looks.amnesty(now=self.clock.run())
        return Sweep(
            sweeper=NAME,
            at=self.clock.run(),
            found_count=len(found),
            recovered_count=recovered,
            note="" if pardon is None else f"nobody is judged until {pardon.until:%H:%M:%S}: {pardon.reason}",
        )

    def find(self) -> tuple[DeadWorker, ...]:
        """Return the worker processes that are dead, by node name."""
        try:
            presences, owners = self.presence.all(), self.recovery.owners()
        except (StoreUnavailable, BrokerUnavailable):
            self._looks.interrupt()
            raise
        self._look(presences, owners)
        if self._looks.amnesty(now=self.clock.run()) is not None:
            return ()
        verdicts = [(owner, self._judge(owner)) for owner in self._signs if owner != self.itself()]
        return tuple(
            DeadWorker(owner=owner, reason=verdict.reason, unacked_count=owners.get(owner, 0))
            for owner, verdict in sorted(verdicts, key=lambda pair: pair[0].worker)
            if verdict.dead
        )

    def act(self, found: Sequence[DeadWorker]) -> int:
        """Recover what dead worker processes left; return how many of them were dealt with.

        Their leases end before their messages go back, so that a job that starts again finds its lease free. A crash in
        between leaves the rest to the next round, of anyone.
        """
        for one in found:
            owner = one.owner
            self.leases.lapse_all(owner.boot)
            restored_count = self.recovery.restore(owner)
            self.presence.forget(owner.worker, boot=owner.boot)
            self.recovery.forget(owner)
            self._signs.pop(owner, None)
            log.warning(
                "dead worker swept",
                worker=owner.worker,
                boot=str(owner.boot),
                reason=one.reason,
                restored_count=restored_count,
            )
        return len(found)

    def _look(self, presences: Sequence[Presence], owners: Mapping[Owner, int]) -> None:
        now = self.clock.run()
        if (before := self._looks.look(now=now)) is None:
            self._signs.clear()
            before = now
        said = {Owner(worker=one.worker, boot=one.boot): one for one in presences}
        self._signs = {owner: self._sign(owner, said.get(owner), before, now) for owner in (*owners, *said)}

    def _sign(self, owner: Owner, presence: Presence | None, before: datetime, now: datetime) -> _Sign:
        known = self._signs.get(owner)
        if presence is None:
            return known or _Sign(said_at=None, at=now, lives_for=self.lives_for)
        if known is not None and known.said_at == presence.refreshed_at:
            return known
        at = last_sign(said_at=presence.refreshed_at, looked_before=before, now=now)
        return _Sign(said_at=presence.refreshed_at, at=at, lives_for=presence.lives_for)

    def _judge(self, owner: Owner) -> Verdict:
        sign, now = self._signs[owner], self.clock.run()
        lapsed_for = now - sign.at - sign.lives_for
        lapsed, introduced = lapsed_for > timedelta(0), sign.said_at is not None
        connections = self.recovery.connections(owner) if lapsed else None
        if connections and not introduced:
            # Its connections are all that it says: to be unseen once, while it connects anew, is not to be dead.
            sign.at = now
        return is_dead(
            presence_lapsed=lapsed,
            connections=connections,
            lapsed_for=lapsed_for,
            # One that never said that it lives may be another application's, or still starting.
            frozen_after=self.frozen_after if introduced else None,
        )

"""Chaos: makes a night's strikes when their moments come, and brings back what they hit, as an orchestrator would."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from nightshift.chaos.acts import ask_to_end, children_of, kill_one, kill_tree, stop_tree
from nightshift.chaos.strike import Strike, StrikeKind
from nightshift.chaos.wounds import ENDS_WITHIN, Away, Bereaved, Cut, Frozen, Wound
from nightshift.journal import RECOVERED, STRUCK, Journal
from slackwater.errors import StoreUnavailable
from slackwater.local import Child, ChildDied, PostgreSQL, Supervisor
from slackwater.testing import FaultProxy

AGAIN_AFTER = timedelta(seconds=1)
"""How soon a process is started anew that could not start while a server was away."""
COULD_NOT_START = 1
"""Exit code of our processes for a server that does not answer, or a pool that cannot be filled."""
STARTS_WITHIN = timedelta(seconds=30)
"""A process is that long on its way: refused while its store is away, or giving up since its first pool has lost
a child."""


@dataclass(kw_only=True)
class Targets:
    """What can be struck, and brought back.

    Attributes:
        children: Processes of the night, by name.
        links: Proxies before its servers, by the link's name.
        servers: Names of its own servers.
        start_server: Starts one of them again.
        supervisor: Of all of them.
    """

    children: Mapping[str, Child]
    links: Mapping[str, FaultProxy]
    servers: Sequence[str]
    start_server: Callable[[str], None]
    supervisor: Supervisor

    def pid(self, name: str) -> int | None:
        """Return the pid of a process; None where it is not there."""
        return self.supervisor.pids.get(name)

    def is_there(self, name: str) -> bool:
        """Tell whether a process is among the children."""
        return name in self.supervisor.pids

    def start(self, name: str) -> None:
        """Start a process or server again."""
        if name in self.servers:
            self.start_server(name)
        else:
            self.supervisor.start(self.children[name])


@dataclass(kw_only=True)
class Chaos:
    """A night's chaos; one without strikes does nothing. For the main thread.

    Attributes:
        strikes: What is to come, by moment.
        begins_at: The night's first instant (run clock).
        targets: Who is struck.
        journal: Where strikes are written down.
        tell: Told of each strike.
    """

    strikes: Sequence[Strike]
    begins_at: datetime
    targets: Targets
    journal: Journal
    tell: Callable[[str], None]
    _to_come: deque[tuple[int, Strike]] = field(init=False)
    _wounds: dict[str, tuple[int | None, Wound]] = field(default_factory=dict, init=False)
    _started_at: dict[str, datetime] = field(default_factory=dict, init=False)
    _troubled_at: datetime | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._to_come = deque(enumerate(self.strikes))

    @property
    def is_over(self) -> bool:
        """Tell whether all strikes were made, and all that was struck is back."""
        return not self._to_come and not self._wounds

    def step(self, now: datetime) -> None:
        """Bring back whose time has come, and make the strikes that are due.

        Raises:
            LocalServiceError: Something could not be started again.
        """
        self._note_trouble(now)  # before a server is back: who is started in the same step may find it away
        for name, (number, wound) in list(self._wounds.items()):
            if (recovery := wound.heal(now)) is not None:
                del self._wounds[name]
                if isinstance(wound, Away):
                    self._started_at[name] = now
                self._recovered(number, recovery, now)
        while self._to_come and self.begins_at + self._to_come[0][1].moment <= now:
            self._make(*self._to_come.popleft(), now)
        self._note_trouble(now)

    def took(self, died: ChildDied, *, now: datetime) -> bool:
        """Tell whether a death is chaos's doing, so that the night goes on: whoever died is started again."""
        _, wound = self._wounds.get(died.name, (None, None))
        if isinstance(wound, Away):
            wound.note_death(now)
            return True
        if not self._could_not_start(died, bereaved=isinstance(wound, Bereaved), now=now):
            return False
        number, _ = self._wounds.get(died.name, (None, None))
        self._wounds[died.name] = (number, self._away(died.name, died.pid, until=now + AGAIN_AFTER))
        self.tell(f"{died.name} could not start, by a strike; it is started again")
        return True

    @contextmanager
    def bearing_outages(self) -> Iterator[None]:
        """Bear that the store does not answer while it is away by a strike."""
        try:
            yield
        except StoreUnavailable:
            if PostgreSQL.name not in self._wounds:
                raise

    def _could_not_start(self, died: ChildDied, *, bereaved: bool, now: datetime) -> bool:
        if died.exit_code != COULD_NOT_START or died.name not in self.targets.children:
            return False
        started_at = self._started_at.get(died.name, self.begins_at)
        troubled = self._troubled_at is not None and self._troubled_at >= started_at
        # One that runs is to outlive what is done to others: that it gives up is no strike's doing.
        return now - started_at < STARTS_WITHIN and (troubled or bereaved)

    def _note_trouble(self, now: datetime) -> None:
        if any(name in self.targets.servers or name in self.targets.links for name in self._wounds):
            self._troubled_at = now

    def _make(self, number: int, strike: Strike, now: datetime) -> None:
        if strike.target in self._wounds:
            effect, wound = "not made: it had not come back yet", None
        elif strike.target in self.targets.links:
            effect, wound = self._cut(strike, now)
        else:
            effect, wound = self._hit(strike, now)
        if wound is not None:
            self._wounds[strike.target] = (number, wound)
        self._write(number, strike, effect, now)
        if wound is None:
            self._recovered(number, "", now)

    def _cut(self, strike: Strike, now: datetime) -> tuple[str, Wound | None]:
        link = self.targets.links[strike.target]
        self._troubled_at = now
        if strike.kind is StrikeKind.DROP:
            return f"{link.drop()} connections", None
        if strike.kind is StrikeKind.STALL:
            link.stall()
            return f"{link.link_count} connections", Cut(until=now + strike.lasts, mend=link.flow)
        return f"{link.refuse()} connections", Cut(until=now + strike.lasts, mend=link.accept)

    def _hit(self, strike: Strike, now: datetime) -> tuple[str, Wound | None]:
        target, until = strike.target, now + strike.lasts
        if (pid := self.targets.pid(target)) is None:
            return "not made: it is not there", None
        if strike.kind is StrikeKind.KILL_CHILD:
            return self._bereave(pid)
        if strike.kind is StrikeKind.FREEZE:
            return f"pid {pid}, {stop_tree(pid)} processes", Frozen(pid=pid, until=until)
        if strike.kind is StrikeKind.KILL:
            return f"pid {pid}, {kill_tree(pid)} processes", self._away(target, pid, until=until)
        ask_to_end(pid)
        ending = self._away(target, pid, lasts=strike.lasts, patience_ends_at=now + ENDS_WITHIN)
        return f"pid {pid}", ending

    def _bereave(self, worker_pid: int) -> tuple[str, Wound | None]:
        children = children_of(worker_pid)
        if not children:
            return "not made: its pool has no child yet", None
        kill_one(children[0])
        return f"pid {children[0]}", Bereaved(
            worker_pid=worker_pid, child_pid=children[0], children_count=len(children)
        )

    def _away(
        self,
        name: str,
        pid: int,
        *,
        until: datetime | None = None,
        lasts: timedelta = timedelta(0),
        patience_ends_at: datetime | None = None,
    ) -> Away:
        return Away(
            pid=pid,
            lasts=lasts,
            until=until,
            patience_ends_at=patience_ends_at,
            is_there=partial(self.targets.is_there, name),
            start=partial(self.targets.start, name),
        )

    def _write(self, number: int, strike: Strike, effect: str, now: datetime) -> None:
        self.journal.write(
            STRUCK,
            at=now,
            number=number,
            kind=strike.kind.value,
            target=strike.target,
            lasts_s=strike.lasts.total_seconds(),
            effect=effect,
        )
        for_how_long = f" for {strike.lasts.total_seconds():.1f} s" if strike.lasts else ""
        self.tell(f"chaos: {strike.target}: {strike.kind.value}{for_how_long} ({effect})")

    def _recovered(self, number: int | None, recovery: str, now: datetime) -> None:
        if number is not None:
            self.journal.write(RECOVERED, at=now, number=number, how=recovery)

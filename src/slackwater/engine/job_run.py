"""One job's run: asking before the body, and telling the store what became of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

import structlog

from slackwater.core.admission import Ask
from slackwater.core.dead_letter import DeadLetter
from slackwater.core.message import Held
from slackwater.core.occurrence import OccurrenceState
from slackwater.engine.group_commit import GroupCommit
from slackwater.errors import StoreUnavailable
from slackwater.ports import Begun, Ending, Finish, Store

log = structlog.get_logger("slackwater.job_run")
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 2.0
Answer = TypeVar("Answer")


@dataclass(kw_only=True)
class JobRuns:
    """Asks and tells the store for the bodies of one process; safe for threads.

    What must not be lost is tried again while the store is away, in the slot of the job that it concerns, and given up
    with `StoreUnavailable` once its patience is over: the delivery then goes back to its queue.

    Attributes:
        store: Gives the store, opened in this process.
        patience: How long a job waits in its slot for a store that is away.
        pause: Sleeps so many seconds.
        full_per_cause: Open dead letters of one lane and cause that keep their message.
    """

    store: Callable[[], Store]
    patience: timedelta
    pause: Callable[[float], None]
    full_per_cause: int
    _begin: GroupCommit[Ask, Begun] = field(init=False)
    _finish: GroupCommit[Finish, None] = field(init=False)
    _hold: GroupCommit[Held, None] = field(init=False)

    def __post_init__(self) -> None:
        self._begin = GroupCommit(self._begin_all)
        self._finish = GroupCommit(self._finish_all)
        self._hold = GroupCommit(self._hold_all)

    def begin(self, ask: Ask) -> Begun | None:
        """Ask whether a body may run.

        Returns:
            What became of it; None where the store is away and nothing but the count of attempts is lost by starting.

        Raises:
            StoreUnavailable: It is away, and a key or a lease says that the body must not run unasked.
        """
        if ask.key is None and ask.lease is None:
            try:
                return self._begin(ask)
            except StoreUnavailable as error:
                # At least once: what cannot be asked runs.
                log.warning("not asked, starts", job=ask.job, task=ask.task, error=str(error))
                return None
        return self._patiently(lambda: self._begin(ask), job=ask.job)

    def has_begun(self, job: str) -> bool:
        """Tell whether a body of this job has begun before.

        Raises:
            StoreUnavailable: It is away for longer than its patience.
        """
        run = self._patiently(lambda: self.store().runs.runs([job]), job=job).get(job)
        # A later try that waits has no attempt of its own; that there is one says that an earlier one began.
        return run is not None and (run.attempts > 0 or run.tries > 0)

    def finish(self, finish: Finish) -> None:
        """Tell how a body ended.

        Raises:
            StoreUnavailable: It is away for longer than its patience, and a key or a lease depends on it.
        """
        try:
            self._patiently(lambda: self._finish(finish), job=finish.job)
        except StoreUnavailable as error:
            if finish.key is not None or finish.lease is not None:
                raise
            log.warning("its end is not told", job=finish.job, error=str(error))

    def parent_starts(self, occurrence: UUID, *, at: datetime) -> None:
        """Note that an occurrence's parent job has started; settling notes it later where the store is away."""
        try:
            self.store().occurrences.advance(occurrence, to=OccurrenceState.RUNNING, at=at)
        except StoreUnavailable as error:
            log.warning("occurrence not noted as running", occurrence=str(occurrence), error=str(error))

    def hold(self, held: Held) -> None:
        """Keep a job in the store.

        Raises:
            StoreUnavailable: It is away for longer than its patience.
        """
        self._patiently(lambda: self._hold(held), job=held.job)

    def bury(self, letter: DeadLetter) -> None:
        """Keep a dead letter.

        Raises:
            StoreUnavailable: It is away for longer than its patience.
        """
        self._patiently(
            lambda: self.store().dead_letters.bury([letter], full_per_cause=self.full_per_cause), job=letter.job
        )

    def end(self, ending: Ending) -> None:
        """Record how a job ended without its body.

        Raises:
            StoreUnavailable: It is away for longer than its patience.
        """
        self._patiently(lambda: self.store().endings.record([ending]), job=ending.job)

    def _begin_all(self, asks: Sequence[Ask]) -> Sequence[Begun]:
        return self.store().runs.begin(asks)

    def _finish_all(self, finishes: Sequence[Finish]) -> Sequence[None]:
        self.store().runs.finish(finishes)
        return [None] * len(finishes)

    def _hold_all(self, held: Sequence[Held]) -> Sequence[None]:
        self.store().holds.hold(held)
        return [None] * len(held)

    def _patiently(self, act: Callable[[], Answer], *, job: str) -> Answer:
        waited_s, pause_s = 0.0, FIRST_PAUSE_S
        while True:
            try:
                return act()
            except StoreUnavailable as error:
                if waited_s >= self.patience.total_seconds():
                    raise
                log.warning("store is away, job waits in its slot", job=job, error=str(error))
            self.pause(pause_s)
            waited_s, pause_s = waited_s + pause_s, min(pause_s * 2, LONGEST_PAUSE_S)

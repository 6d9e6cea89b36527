"""Keys at dispatch: a job whose work is pending, under way or freshly done is not published."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import structlog
from celery import Celery
from celery.app.task import Context

from slackwater.adapters.celery.ends import Ends
from slackwater.adapters.celery.publishing import Sending
from slackwater.adapters.celery.rules import arguments_of, rules_of
from slackwater.core.admission import KeyRule, Resolve
from slackwater.core.delivery import Delivery
from slackwater.core.job import JobState, Mark
from slackwater.core.lane import Lane
from slackwater.errors import StoreUnavailable
from slackwater.ports import Announcement, Clock, Store

log = structlog.get_logger("slackwater.announcing")


@dataclass(frozen=True, kw_only=True)
class Announcer:
    """Claims keys before jobs are published.

    Attributes:
        app: Whose tasks.
        lanes: By name.
        store: Gives the store.
        clock: The two clocks.
        ends: Ends jobs that are not published.
        pending_for: How long an announced job that has not begun keeps others from being published (run clock).
    """

    app: Celery
    lanes: Mapping[str, Lane]
    store: Callable[[], Store]
    clock: Clock
    ends: Ends
    pending_for: timedelta
    _thread: threading.local = field(default_factory=threading.local, init=False)

    def is_taken(self, sending: Sending) -> bool:
        """Tell whether a message need not be published, and end its job as a duplicate then.

        A message on whose end something depends is published all the same: the guard resolves it, and what follows goes
        on. So is every message while the store is away.
        """
        task = self.app.tasks.get(sending.name)
        if task is None or sending.leads_on or getattr(self._thread, "claimed", False):
            return False
        args, kwargs, _ = sending.message.body
        rule = self.key_of(task, args, kwargs, mark=sending.mark)
        if rule is None:
            return False
        other = self.announce([Announcement(job=sending.job, task=sending.name, key=rule)])[0]
        if other == sending.job:
            return False
        self.end(sending.job, rule, other, task=sending.name, mark=sending.mark, request=sending.request)
        return True

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Say that the keys of what this thread publishes within the block are claimed already."""
        self._thread.claimed = True
        try:
            yield
        finally:
            self._thread.claimed = False

    def key_of(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any], *, mark: Mark | None) -> KeyRule | None:
        """Return the key of one call; None for a task without key, or a call that gives it no name."""
        rules = rules_of(task, self.lanes)
        if rules.key is None and (mark is None or mark.key is None):
            return None
        try:
            arguments = arguments_of(task, args, kwargs) if rules.parameters else {}
            return rules.key_rule(mark, arguments, calendar=self.clock.calendar())
        except (TypeError, ValueError) as error:
            log.warning("no name for key", task=str(task.name), error=str(error))
            return None

    def announce(self, announcements: Sequence[Announcement]) -> Sequence[str]:
        """Claim keys; return for each the job that has it. While the store is away, each job has its own."""
        now = self.clock.run()
        try:
            return self.store().runs.announce(announcements, at=now, stale_before=now - self.pending_for)
        except StoreUnavailable as error:
            log.warning("keys not claimed at dispatch", jobs=len(announcements), error=str(error))
            return [one.job for one in announcements]

    def end(self, job: str, rule: KeyRule, other: str, *, task: str, mark: Mark | None, request: Any) -> None:
        """End a job that is not published as a duplicate of another: with its result, where there is one."""
        delivery = Delivery(job=job, task=task, tries=0, mark=mark, redelivered=False)
        done, result = self.ends.success_of(other)
        state = JobState.DONE if done else JobState.QUEUED
        to = Resolve(to=other, state=state, reason=f"key {rule.name}: {'done already' if done else 'pending'}")
        if not done:
            self.ends.resolve(delivery, to, request=request)
            return
        self.ends.told_as_duplicate(delivery, to)
        self.app.backend.mark_as_done(job, result, request=Context(request))

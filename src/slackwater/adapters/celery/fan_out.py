"""Fan-outs: one job publishes many, in batches, under ids that a second run of it would give them again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

import structlog
from celery import Celery, Task, current_task
from kombu.exceptions import OperationalError

from slackwater.adapters.celery.announcing import Announcer
from slackwater.adapters.celery.publishing import Seam, job_uuid, mark_of
from slackwater.core.guard import Start
from slackwater.core.job import JobState, Mark, child_id
from slackwater.errors import BrokerUnavailable
from slackwater.ports import Announcement, Clock, Store

log = structlog.get_logger("slackwater.fan_out")
PUBLISH_TRIES = 3
AnyTask: TypeAlias = "Task[Any, Any]"


@dataclass(frozen=True, kw_only=True)
class FanOut:
    """What became of a fan-out.

    Attributes:
        published: Ids whose publishing the broker confirmed.
        expired: Ids that were past their `start_by` before they were published.
        duplicates: Ids whose key another job has: pending, under way, or freshly done. They are not published.
    """

    published: tuple[str, ...]
    expired: tuple[str, ...]
    duplicates: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Item:
    job: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class FanOuts:
    """Publishes fan-outs of one application."""

    app: Celery
    seam: Seam
    store: Callable[[], Store]
    clock: Clock
    announcer: Announcer
    batch: int

    def publish(self, task: AnyTask, items: Iterable[Sequence[Any] | Mapping[str, Any]]) -> FanOut:
        """Publish one job of a task for each item: its positional arguments, or its keyword arguments.

        Guarantee: at least once under the same ids. In an occurrence a durable row is written for each job before it
        is published, so that one that gets lost on its way is known by id; each carries the occurrence's `start_by`.

        Raises:
            BrokerUnavailable: A batch was not confirmed after three tries; those before it were.
        """
        parent, mark = _parent()
        published: list[str] = []
        expired: list[str] = []
        duplicates: list[str] = []
        for batch in _batches(_named(task, items, parent=parent), self.batch):
            jobs = [item.job for item in batch]
            self._record(jobs, mark)
            if isinstance(self.seam.lateness.verdict(mark), Start):
                taken = self._taken(task, batch, mark)
                self._send(task, [item for item in batch if item.job not in taken])
                published += [job for job in jobs if job not in taken]
                duplicates += taken
            else:
                self._expire(task, batch)
                expired += jobs
        return FanOut(published=tuple(published), expired=tuple(expired), duplicates=tuple(duplicates))

    def _taken(self, task: AnyTask, batch: Sequence[_Item], mark: Mark | None) -> Sequence[str]:
        """Claim the keys of a batch; end those that others have, and return their ids."""
        child = None if mark is None else mark.for_child(published_at=self.clock.run(), lane=mark.lane)
        rules = {item.job: self.announcer.key_of(task, item.args, item.kwargs, mark=child) for item in batch}
        keyed = {job: rule for job, rule in rules.items() if rule is not None}
        if not keyed:
            return ()
        name = str(task.name)
        holders = self.announcer.announce([Announcement(job=job, task=name, key=rule) for job, rule in keyed.items()])
        taken = {job: holder for job, holder in zip(keyed, holders, strict=True) if holder != job}
        if taken and mark is not None and mark.occurrence is not None:
            # Before their results say so: those of duplicates of what is done say done, and whoever settles by results
            # would count them as that.
            self.store().fan_outs.settle(dict.fromkeys(taken, JobState.DUPLICATE), at=self.clock.run())
        for job, holder in taken.items():
            self.announcer.end(job, keyed[job], holder, task=name, mark=child, request={"id": job, "task": name})
        return tuple(taken)

    def _record(self, jobs: Sequence[str], mark: Mark | None) -> None:
        if mark is not None and mark.occurrence is not None:
            self.store().fan_outs.add(mark.occurrence, jobs)

    def _expire(self, task: AnyTask, batch: Sequence[_Item]) -> None:
        # Each passes the seam, which ends it (its result, its ending, a line in the log), unless an earlier run of the
        # parent has published it: then it ends by itself. Either way its result tells, and settling reads that.
        for item in batch:
            task.apply_async(args=item.args, kwargs=dict(item.kwargs), task_id=item.job)

    def _send(self, task: AnyTask, batch: Sequence[_Item]) -> None:
        if not batch:
            return
        for tries_left in reversed(range(PUBLISH_TRIES)):
            try:
                self._send_once(task, batch)
            except (OperationalError, OSError) as error:
                # Some may have gone out. The same ids again: a copy is harmless, a hole is not.
                if not tries_left:
                    raise BrokerUnavailable(
                        f"{len(batch)} jobs of {task.name} were not confirmed after {PUBLISH_TRIES} tries ({error}); "
                        "the broker must be reachable, then run the parent job again",
                        outcome_unknown=True,
                    ) from error
                log.warning("batch not confirmed, sent again", task=task.name, count=len(batch), error=str(error))
            else:
                return

    def _send_once(self, task: AnyTask, batch: Sequence[_Item]) -> None:
        with (
            self.announcer.claimed(),
            self.app.producer_or_acquire() as producer,
            self._news_of(producer),
            producer.batch(len(batch) * 2),
        ):
            for item in batch:
                task.apply_async(args=item.args, kwargs=dict(item.kwargs), task_id=item.job, producer=producer)

    def _news_of(self, producer: Any) -> AbstractContextManager[None]:
        # Where the transport cannot batch, each publish is confirmed by itself, whatever becomes of the next one.
        return self.seam.batch() if producer.supports_batch_publish else nullcontext()


def _parent() -> tuple[UUID, Mark | None]:
    if not current_task or not current_task.request.id:
        return uuid4(), None
    job = str(current_task.request.id)
    return job_uuid(job) or uuid5(NAMESPACE_OID, job), mark_of(current_task.request)


def _named(task: AnyTask, items: Iterable[Sequence[Any] | Mapping[str, Any]], *, parent: UUID) -> Iterator[_Item]:
    name = str(task.name)
    for item in items:
        args, kwargs = ((), item) if isinstance(item, Mapping) else (tuple(item), {})
        yield _Item(str(child_id(parent, name, args, kwargs)), args, kwargs)


def _batches(items: Iterator[_Item], size: int) -> Iterator[list[_Item]]:
    while batch := list(islice(items, size)):
        yield batch

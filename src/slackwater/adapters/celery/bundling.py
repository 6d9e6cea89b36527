"""Noting groups and chords as they are published, so that somebody knows of one that cannot complete.

Celery itself keeps no list of them: a group is known to whoever holds its result, a chord by a count in the result
backend. Each is noted once it is published, in one row: of whoever dies in the middle of publishing, none is noted.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import structlog
from celery import Celery
from celery.result import GroupResult
from kombu.utils import json

from slackwater.core.bundle import Bundle, Link, Member
from slackwater.ports import Clock, Store

log = structlog.get_logger("slackwater.bundles")
AnyResult: Any = GroupResult
REMEMBERED = 50_000
"""Jobs of bundles that a thread remembers while it publishes them; of a larger one the first are not `placed`."""
REMEMBERED_BODIES = 1_000
"""Chords around each other, or side by side in one group, whose bodies a thread remembers."""


@dataclass(frozen=True)
class _Sent:
    task: str
    placed: bool
    start_by: datetime | None


@dataclass
class _Memory:
    """What one thread has published and not yet noted."""

    sent: OrderedDict[str, _Sent] = field(default_factory=OrderedDict)
    callbacks: OrderedDict[str, Mapping[str, Any]] = field(default_factory=OrderedDict)

    def keep(self, job: str, one: _Sent) -> None:
        self.sent[job] = one
        _bound(self.sent)

    def keep_callback(self, group: str, callback: Mapping[str, Any]) -> None:
        self.callbacks[group] = callback
        _bound(self.callbacks, REMEMBERED_BODIES)


def _bound(kept: OrderedDict[str, Any], most: int = REMEMBERED) -> None:
    # What is left of a publish that failed must not stay for ever.
    if len(kept) > most:
        kept.popitem(last=False)


@dataclass(kw_only=True)
class Bundler:
    """Notes the bundles that this application publishes.

    Attributes:
        app: The application.
        store: Gives the store.
        clock: The two clocks.
        lane_of: Lane of a task, by its name.
        queues: The lanes' queues.
        wanted: Bundles are noted at all.
    """

    app: Celery
    store: Callable[[], Store]
    clock: Clock
    lane_of: Callable[[str], str | None]
    queues: frozenset[str]
    wanted: bool
    _thread: threading.local = field(default_factory=threading.local, init=False)

    def install(self) -> None:
        """Have the application's groups noted: each makes its result, with a barrier, once all of it is published."""
        if not self.wanted:
            return
        stock, note = self.app.GroupResult, self._note

        class NotedGroupResult(stock):  # type: ignore[misc,valid-type]  # made by Celery at run time
            """Celery's result of a group, which is noted when the group has just been published."""

            def __init__(self, id: Any = None, results: Any = None, parent: Any = None, **options: Any) -> None:  # noqa: A002
                super().__init__(id, results, parent, **options)
                if options.get("ready_barrier") is not None:
                    note(self)

        self.app.__dict__["GroupResult"] = NotedGroupResult

    def sent(
        self,
        headers: Mapping[str, Any],
        embed: Mapping[str, Any],
        options: Mapping[str, Any],
        start_by: datetime | None,
    ) -> None:
        """Remember a message that was published, if it belongs to a group, with all that follows it.

        Args:
            headers: Its own.
            embed: What is linked to it, as its body carries it.
            options: What it was published with: queue, or exchange and routing key.
            start_by: Its window's end (calendar clock); None for none.
        """
        group, chain, chord = headers.get("group"), embed.get("chain"), embed.get("chord")
        if not self.wanted or (group is None and not any(_group_of(one) for one in chain or ())):
            return
        memory = self._memory()
        task = str(headers["task"])
        memory.keep(str(headers["id"]), _Sent(task, self._is_placed(task, options), start_by))
        if group is not None and chord:
            memory.keep_callback(str(group), chord)
        for signature in (*(chain or ()), *((chord,) if chord else ())):
            self._remember(memory, signature, start_by)

    def forget(self) -> None:
        """Forget what this thread has published: the next links of chains and chords' bodies, of no group made here."""
        self._thread.memory = None

    def _remember(self, memory: _Memory, signature: Mapping[str, Any], start_by: datetime | None) -> None:
        options = signature.get("options") or {}
        if (group := _group_of(signature)) is not None and options.get("chord"):
            memory.keep_callback(group, options["chord"])
            self._remember(memory, options["chord"], start_by)
        for link in _jobs_of(signature):
            memory.keep(link.job, _Sent(link.task, self._is_placed(link.task, options), start_by))
        for following in options.get("chain") or ():
            self._remember(memory, following, start_by)

    def _note(self, result: Any) -> None:
        memory = self._memory()
        members = [self._member(memory, leaf) for leaf in _leaves(result.results)]
        if not members:
            return
        spans = {one.start_by for one in (memory.sent.get(each.job) for each in members) if one is not None}
        callback = memory.callbacks.pop(str(result.id), None)
        now = self.clock.run()
        bundle = Bundle(
            id=str(result.id),
            members=tuple(members),
            body=None if callback is None else self._body(callback),
            callback=None if callback is None else _written(callback),
            noted_at=now,
            start_by=None if not spans or None in spans else max(span for span in spans if span is not None),
            kept_until=None if (kept_for := self._kept_for()) is None else now + kept_for,
        )
        for link in (link for member in members for link in member.links):
            memory.sent.pop(link.job, None)
        try:
            self.store().bundles.note([bundle])
        except Exception as error:  # noqa: BLE001  # the group is published: no store's trouble may say otherwise
            log.warning("not noted, and not watched", bundle=bundle.id, kind=bundle.kind, error=str(error))

    def _member(self, memory: _Memory, leaf: Any) -> Member:
        jobs = list(_path(leaf))
        known = [memory.sent.get(job) for job in jobs]
        links = tuple(Link(job, "" if sent is None else sent.task) for job, sent in zip(jobs, known, strict=True))
        return Member(links=links, placed=all(sent is not None and sent.placed for sent in known))

    def _body(self, callback: Mapping[str, Any]) -> Member:
        links = tuple(_jobs_of(callback))
        # A chain as body, whose first job has no id before it is published, is seen nowhere until then.
        whole, options = callback.get("subtask_type") != "chain", callback.get("options") or {}
        return Member(links=links, placed=whole and all(self._is_placed(link.task, options) for link in links))

    def _is_placed(self, task: str, options: Mapping[str, Any]) -> bool:
        known: Any = self.app.tasks.get(task)
        if self.lane_of(task) is None or not getattr(known, "acks_late", False):
            return False
        queue = options.get("queue")
        if queue is not None:
            return str(getattr(queue, "name", queue)) in self.queues
        return options.get("routing_key") is None and options.get("exchange") is None

    def _kept_for(self) -> timedelta | None:
        """Return after how long the first result, or a chord's count, may be gone; None for never."""
        conf: Any = self.app.conf
        given = (conf.result_expires, conf.result_failure_expires, conf.result_chord_expires)
        spans = [one if isinstance(one, timedelta) else timedelta(seconds=float(one)) for one in given if one]
        return min(spans, default=None)

    def _memory(self) -> _Memory:
        memory: _Memory | None = getattr(self._thread, "memory", None)
        if memory is None:
            memory = self._thread.memory = _Memory()
        return memory


def _group_of(signature: Mapping[str, Any]) -> str | None:
    group = (signature.get("options") or {}).get("group_id")
    return None if group is None else str(group)


def _jobs_of(signature: Mapping[str, Any]) -> Iterator[Link]:
    """Yield the jobs of a signature that have an id: of a chord its body, of a group and a chain their tasks."""
    kind, kwargs = signature.get("subtask_type"), signature.get("kwargs") or {}
    if kind == "chord":
        yield from _jobs_of(kwargs.get("body") or {})
        return
    if kind in ("group", "chain"):
        for one in _tasks_in(kwargs):
            yield from _jobs_of(one)
    job = (signature.get("options") or {}).get("task_id")
    if job is not None and kind != "group":
        yield Link(str(job), "" if kind == "chain" else str(signature.get("task") or ""))


def _tasks_in(kwargs: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    tasks = kwargs.get("tasks") or ()
    return [one for one in tasks if isinstance(one, Mapping)] if isinstance(tasks, (list, tuple)) else ()


def _leaves(results: Iterable[Any]) -> Iterator[Any]:
    for one in results or ():
        if isinstance(one, AnyResult):
            yield from _leaves(one.results)
        else:
            yield one


def _path(leaf: Any) -> Iterator[str]:
    """Yield the ids of a member's chain, first first; the members of a chord inside of it are that chord's own."""
    jobs: list[str] = []
    while leaf is not None:
        if not isinstance(leaf, AnyResult):
            jobs.append(str(leaf.id))
        leaf = leaf.parent
    yield from reversed(jobs)


def _written(callback: Mapping[str, Any]) -> str | None:
    try:
        return str(json.dumps(callback))
    except (TypeError, ValueError):
        return None  # its end is told without what is linked to it

"""Noting groups and chords as they are published, so that somebody knows of one that cannot complete.

Celery itself keeps no list of them: a group is known to whoever holds its result, a chord by a count in the result
backend. Each is noted once it is published, in one row. A chord is also noted before its first job goes out, as its
publisher may die in the middle: Celery makes a result of all its members before. A group's members get their ids one
after another as they go out, and nobody waits for one whose publisher died, as it had not returned a result yet.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import structlog
from celery import Celery, current_task
from celery.result import GroupResult
from kombu.utils import json

from slackwater.core.bundle import Bundle, Link, Member
from slackwater.ports import Clock, Store

log = structlog.get_logger("slackwater.bundles")
AnyResult: Any = GroupResult
REMEMBERED = 50_000
"""Jobs of bundles that a thread remembers while it publishes them; of a larger one the first are not `placed`."""
REMEMBERED_BEGUN = 100
"""Chords that a thread may be about to publish."""
NOTED_EVERY = timedelta(seconds=5)
"""How often it is noted that a chord is still being published."""
REMEMBERED_BODIES = 1_000
"""Chords around each other, or side by side in one group, whose bodies a thread remembers."""


@dataclass(frozen=True)
class _Sent:
    task: str
    placed: bool
    start_by: datetime | None


@dataclass
class _Begun:
    """A chord whose members are known, and not yet all published."""

    paths: Sequence[Sequence[str]]
    noted_at: datetime | None = None

    @property
    def count(self) -> int:
        return sum(map(len, self.paths))


@dataclass
class _Memory:
    """What one thread has published and not yet noted, and what it may be about to publish."""

    sent: OrderedDict[str, _Sent] = field(default_factory=OrderedDict)
    callbacks: OrderedDict[str, Mapping[str, Any]] = field(default_factory=OrderedDict)
    begun: OrderedDict[str, _Begun] = field(default_factory=OrderedDict)

    def keep(self, job: str, one: _Sent) -> None:
        self.sent[job] = one
        _bound(self.sent)

    def keep_callback(self, group: str, callback: Mapping[str, Any]) -> None:
        self.callbacks[group] = callback
        _bound(self.callbacks, REMEMBERED_BODIES)

    def keep_begun(self, group: str, paths: Sequence[Sequence[str]]) -> None:
        self.begun.pop(group, None)
        self.begun[group] = _Begun(paths)
        # Groups that others will publish are among them; a chord is published right after it came here.
        while len(self.begun) > 1 and sum(one.count for one in self.begun.values()) > REMEMBERED:
            self.begun.popitem(last=False)
        _bound(self.begun, REMEMBERED_BEGUN)


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
        """Have the application's groups noted: each makes its result, with a barrier, once all of it is published.

        A chord makes one of its members before, too, without a barrier.
        """
        if not self.wanted:
            return
        stock, note, foresee = self.app.GroupResult, self._note, self._foresee

        class NotedGroupResult(stock):  # type: ignore[misc,valid-type]  # made by Celery at run time
            """Celery's result of a group, which is noted when the group has just been published."""

            def __init__(self, id: Any = None, results: Any = None, parent: Any = None, **options: Any) -> None:  # noqa: A002
                super().__init__(id, results, parent, **options)
                if options.get("ready_barrier") is not None:
                    note(self)
                elif isinstance(results, list):
                    foresee(self)

        self.app.__dict__["GroupResult"] = NotedGroupResult

    def begins(
        self,
        headers: Mapping[str, Any],
        embed: Mapping[str, Any],
        options: Mapping[str, Any],
        start_by: datetime | None,
    ) -> None:
        """Note the chords of which a message is the first to go out, and from time to time that they still do.

        The arguments are those of `sent`.
        """
        memory: _Memory | None = getattr(self._thread, "memory", None)
        if memory is None or not memory.begun:
            return
        now, due = self.clock.run(), []
        for group in _groups_of(headers, embed):
            begun = memory.begun.get(group)
            if begun is not None and (begun.noted_at is None or begun.noted_at + NOTED_EVERY <= now):
                due.append((group, begun))
        if not due:
            return
        self.sent(headers, embed, options, start_by)
        for _, begun in due:
            begun.noted_at = now
        publisher = str(current_task.request.id) if current_task and current_task.request.id else None
        self._keep([self._unfinished(memory, group, begun.paths, publisher) for group, begun in due])

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

    def _foresee(self, result: Any) -> None:
        if result.results:
            self._memory().keep_begun(str(result.id), _paths(result))

    def _unfinished(self, memory: _Memory, group: str, paths: Sequence[Sequence[str]], publisher: str | None) -> Bundle:
        bundle = self._bundle(memory, group, paths)
        seen = [any(job in memory.sent for job in path) for path in paths]
        # Where the others will go is not known: where those go that have gone out, most likely.
        placed = all(one.placed for one, was_seen in zip(bundle.members, seen, strict=True) if was_seen)
        members = tuple(
            one if was_seen else replace(one, placed=placed) for one, was_seen in zip(bundle.members, seen, strict=True)
        )
        return replace(bundle, members=members, whole=False, publisher=publisher)

    def _note(self, result: Any) -> None:
        memory, group = self._memory(), str(result.id)
        memory.begun.pop(group, None)
        bundle = self._bundle(memory, group, _paths(result))
        if not bundle.members:
            return
        memory.callbacks.pop(group, None)
        for link in (link for member in bundle.members for link in member.links):
            memory.sent.pop(link.job, None)
        self._keep([bundle])

    def _bundle(self, memory: _Memory, group: str, paths: Sequence[Sequence[str]]) -> Bundle:
        members = [self._member(memory, path) for path in paths]
        spans = {one.start_by for one in (memory.sent.get(each.job) for each in members) if one is not None}
        callback = memory.callbacks.get(group)
        now = self.clock.run()
        return Bundle(
            id=group,
            members=tuple(members),
            body=None if callback is None else self._body(callback),
            callback=None if callback is None else _written(callback),
            noted_at=now,
            start_by=None if not spans or None in spans else max(span for span in spans if span is not None),
            kept_until=None if (kept_for := self._kept_for()) is None else now + kept_for,
        )

    def _keep(self, bundles: Sequence[Bundle]) -> None:
        try:
            self.store().bundles.note(bundles)
        except Exception as error:  # noqa: BLE001  # what is published is: no store's trouble may say otherwise
            for one in bundles:
                log.warning("not noted, and not watched", bundle=one.id, kind=one.kind, error=str(error))

    def _member(self, memory: _Memory, jobs: Sequence[str]) -> Member:
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


def _groups_of(headers: Mapping[str, Any], embed: Mapping[str, Any]) -> Iterator[str]:
    """Yield the groups that a message counts for, by itself or by what follows it: a chain's last, a chord's body."""
    if headers.get("group") is not None:
        yield str(headers["group"])
    following = [*(embed.get("chain") or ()), *((chord,) if (chord := embed.get("chord")) else ())]
    while following:
        signature = following.pop()
        if (group := _group_of(signature)) is not None:
            yield group
        if chord := (signature.get("options") or {}).get("chord"):
            following.append(chord)


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


def _paths(result: Any) -> list[list[str]]:
    """Return the jobs of each member of a group, by its result."""
    return [list(_path(leaf)) for leaf in _leaves(result.results)]


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

"""What is wrong with an application as it stands, what its broker would make of it, and what may surprise."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import structlog
from celery import Celery

from slackwater.adapters.brokers.queues import refused_queues
from slackwater.adapters.celery.configuration import conflicts, is_redis, misrouted, own_queue, routed_queue
from slackwater.adapters.celery.heartbeating import note_on_heartbeat
from slackwater.adapters.celery.rules import rules_of
from slackwater.adapters.celery.run_times import too_long, unlimited
from slackwater.core.lane import Lane, find
from slackwater.core.schedule import Schedule
from slackwater.errors import BrokerUnavailable, ConfigurationError

log = structlog.get_logger("slackwater.worker")
NAMED = 5
"""How many tasks a note names."""
_NOT_THEIRS = ("celery.", "slackwater.")


def findings(app: Celery, lanes: Mapping[str, Lane], queues: Mapping[str, str], schedule: Schedule) -> list[str]:
    """List all that keeps an application from running, one line each with its remedy.

    Args:
        app: The application, its tasks registered.
        lanes: Lane by name.
        queues: Queue by lane.
        schedule: What runs when.
    """
    return [
        *conflicts(app),
        *misrouted(app, queues),
        *_unknown_lanes(app, lanes),
        *_unknown_tasks(app, schedule),
        *_wrong_rules(app, lanes),
    ]


def broker_findings(
    app: Celery, lanes: Mapping[str, Lane], consumed: Iterable[str], *, consumer_timeout: timedelta
) -> list[str]:
    """List what RabbitMQ would not do as the lanes need it; nothing is asked of Valkey.

    Args:
        app: The application.
        lanes: Lane by name.
        consumed: Lanes whose jobs' time limits are compared with RabbitMQ's consumer timeout.
        consumer_timeout: How long RabbitMQ waits for an acknowledgement.
    """
    if is_redis(app):
        return []
    found = too_long(app, _tasks_of(app, lanes, consumed), timeout=consumer_timeout)
    try:
        return found + refused_queues(app)
    except BrokerUnavailable as error:
        # A worker waits for its broker; it is no mistake of the application's.
        log.warning("queues not compared with the broker's", error=str(error))
        return found


def notes(
    app: Celery,
    lanes: Mapping[str, Lane],
    queues: Mapping[str, str],
    *,
    consumer_timeout: timedelta,
    found_within: timedelta,
) -> list[str]:
    """List what is allowed and may still surprise: tasks that opt out of a delivery setting, or have no lane.

    Args:
        app: The application.
        lanes: Lane by name.
        queues: Queue by lane.
        consumer_timeout: How long RabbitMQ waits for an acknowledgement.
        found_within: Within what time a worker that stands still is to be found.
    """
    early = [
        f"task {name}: acks_late=False; it is lost when its worker dies"
        for name, task in _tasks(app)
        if getattr(task, "lane", None) in lanes and not task.acks_late
    ]
    if not is_redis(app):
        early += unlimited(app, _tasks_of(app, lanes, lanes), timeout=consumer_timeout)
    return [*early, *note_on_heartbeat(app, within=found_within), *_without_lane(app, queues)]


def _tasks(app: Celery) -> Iterator[tuple[str, Any]]:
    """Return the application's own tasks, by name."""
    return ((name, task) for name, task in sorted(app.tasks.items()) if not name.startswith(_NOT_THEIRS))


def _tasks_of(app: Celery, lanes: Mapping[str, Lane], wanted: Iterable[str]) -> dict[str, str]:
    """Return the lane of each task that is in one of these lanes."""
    among = set(wanted) & set(lanes)
    return {name: str(task.lane) for name, task in _tasks(app) if getattr(task, "lane", None) in among}


def _without_lane(app: Celery, queues: Mapping[str, str]) -> list[str]:
    by_queue: dict[str, list[str]] = {}
    for name, task in _tasks(app):
        if getattr(task, "lane", None) is None:
            queue = own_queue(task) or routed_queue(app, name) or str(app.conf.task_default_queue)
            by_queue.setdefault(queue, []).append(name)
    lanes = {queue: lane for lane, queue in queues.items()}
    return [_laneless(names, queue, read_by=lanes.get(queue)) for queue, names in by_queue.items()]


def _laneless(names: Sequence[str], queue: str, *, read_by: str | None) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    named = f"{', '.join(names[:NAMED])}{more}"
    has, goes = ("task", "has no lane: it goes") if len(names) == 1 else ("tasks", "have no lane: they go")
    if read_by is not None:
        return f"{has} {named} {goes} to the queue of lane {read_by}, uncounted; give each lane={read_by!r}"
    return f"{has} {named} {goes} to queue {queue}, which no lane's worker reads; give each lane=..."


def _unknown_lanes(app: Celery, lanes: Mapping[str, Lane]) -> list[str]:
    found: list[str] = []
    for name, task in sorted(app.tasks.items()):
        lane = getattr(task, "lane", None)
        if lane is None or lane in lanes:
            continue
        try:
            find(lanes, str(lane), asked_by=f"task {name}")
        except ConfigurationError as error:
            found += error.findings
    return found


def _wrong_rules(app: Celery, lanes: Mapping[str, Lane]) -> list[str]:
    found: list[str] = []
    for _, task in sorted(app.tasks.items()):
        try:
            rules_of(task, lanes)
        except ConfigurationError as error:
            found += error.findings
    return found


def _unknown_tasks(app: Celery, schedule: Schedule) -> list[str]:
    found = []
    for name, entry in schedule.entries.items():
        task = entry.task or name
        if task in app.tasks:
            continue
        near = difflib.get_close_matches(task, app.tasks, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "import its module, or name it with Entry(task=...)"
        found.append(f"entry {name!r}: no task is registered as {task!r}; {hint}")
    return found

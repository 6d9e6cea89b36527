"""How long jobs may run, against how long RabbitMQ lets them (`consumer_timeout`).

RabbitMQ closes the channel of a consumer that does not acknowledge in time, and delivers the message again: beside the
body that still runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from celery import Celery

_NAMED = 5


def limit_of(app: Celery, task: str) -> timedelta | None:
    """Return the longest time that a task's body may take: its hard limit, else the soft one; None for no limit."""
    own: Any = app.tasks[task]
    for name in ("time_limit", "soft_time_limit"):
        seconds = getattr(own, name, None) or app.conf[f"task_{name}"]
        if seconds:
            return timedelta(seconds=float(seconds))
    return None


def too_long(app: Celery, tasks: Mapping[str, str], *, timeout: timedelta) -> list[str]:
    """List the lanes whose longest job may run longer than RabbitMQ waits, one line each.

    Args:
        app: The application.
        tasks: Lane by task.
        timeout: RabbitMQ's consumer timeout.
    """
    longest: dict[str, tuple[timedelta, str]] = {}
    for task, lane in tasks.items():
        if (limit := limit_of(app, task)) is not None:
            longest[lane] = max(longest.get(lane, (timedelta(0), "")), (limit, task))
    return [
        f"lane {lane!r}: task {task} may run for {limit} (its time limit), and RabbitMQ takes a message back after "
        f"{timeout}: lower the limit, or raise consumer_timeout in rabbitmq.conf and "
        "SLACKWATER_RABBITMQ_CONSUMER_TIMEOUT"
        for lane, (limit, task) in sorted(longest.items())
        if limit > timeout
    ]


def unlimited(app: Celery, tasks: Mapping[str, str], *, timeout: timedelta) -> list[str]:
    """Note the tasks that have no time limit at all, in one line; none where there are none."""
    found = [task for task in tasks if limit_of(app, task) is None]
    if not found:
        return []
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return [
        f"no time limit has {', '.join(found[:_NAMED])}{more}: RabbitMQ delivers a job again that runs longer than "
        f"{timeout}; give time_limit="
    ]

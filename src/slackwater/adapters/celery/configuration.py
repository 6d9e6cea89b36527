"""Celery's configuration from the lanes: what Slackwater sets, and what it refuses to find set otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from celery import Celery
from celery.app.routes import Router, prepare
from kombu import Queue

from slackwater.adapters.brokers.queues import DEAD_LETTERS, DELIVERY_LIMIT, plain_queue, quorum_queue
from slackwater.core.lane import Lane
from slackwater.errors import ConfigurationError

SPARE_CONNECTIONS = 20

DEMANDED: Mapping[str, tuple[Any, str]] = {
    "task_acks_late": (True, "a job must not be lost with its worker"),
    "task_reject_on_worker_lost": (True, "a job must not be lost with its pool process"),
    "worker_prefetch_multiplier": (1, "a waiting job must not be hostage of a busy worker"),
    "task_track_started": (True, "the ledger tells running jobs from waiting ones"),
    "task_ignore_result": (False, "the ledger reads how each job ended"),
    "task_protocol": (2, "marks travel in message headers"),
    "task_always_eager": (False, "work runs in lanes"),
}


def queues_of(lanes: Mapping[str, Lane], *, prefix: str) -> Mapping[str, str]:
    """Return each lane's queue name."""
    return {name: f"{prefix}{name}" for name in lanes}


def conflicts(app: Celery) -> list[str]:
    """List the settings that are set by the application and contradict what Slackwater needs, one line each."""
    conf = app.conf
    found = [
        f"setting {name} = {conf[name]!r} conflicts with Slackwater, which needs {value!r} ({why}); remove the line"
        for name, (value, why) in DEMANDED.items()
        if conf.value_set_for(name) and conf[name] != value
    ]
    if not conf.result_backend:
        found.append(
            "setting result_backend is not set; the ledger reads how each job ended: "
            "set result_backend (for instance to the Valkey that is the broker)"
        )
    elif urlsplit(str(conf.result_backend)).scheme == "rpc":
        found.append(
            "setting result_backend = 'rpc://' conflicts with Slackwater: rpc results can be read once, by their "
            "caller; set result_backend to a Valkey or Redis URL"
        )
    return found


def is_redis(app: Celery) -> bool:
    """Tell whether the broker is Valkey or Redis."""
    scheme = urlsplit(str(app.conf.broker_url or "")).scheme
    return scheme.partition("+")[0] in {"redis", "rediss", "sentinel", "valkey"}


def configure(app: Celery, lanes: Mapping[str, Lane], *, prefix: str, delivery_limit: int = DELIVERY_LIMIT) -> None:
    """Set on the application what follows from its lanes.

    Args:
        app: The application.
        lanes: By name.
        prefix: Put before the queues' names.
        delivery_limit: Of the lanes' queues on RabbitMQ.

    Raises:
        ConfigurationError: It has settings that conflict; all of them, one line each. Nothing is changed then.
    """
    found = conflicts(app)
    if DEAD_LETTERS in lanes and not is_redis(app):
        found.append(f"lane {DEAD_LETTERS!r}: on RabbitMQ a queue of that name keeps dead letters; give another name")
    if found:
        raise ConfigurationError(*found)
    names = queues_of(lanes, prefix=prefix)
    for setting, (value, _) in DEMANDED.items():
        app.conf[setting] = value

    def queue(name: str) -> Queue:
        return plain_queue(name) if is_redis(app) else quorum_queue(name, prefix=prefix, limit=delivery_limit)

    app.conf.task_queues = [*_other_queues(app, names), *(queue(names[lane]) for lane in lanes)]
    app.conf.task_routes = [_Router(lanes=lanes, names=names, app=app), *_routes(app.conf.task_routes)]
    app.conf.broker_transport_options = {**(app.conf.broker_transport_options or {}), **_transport_options(app)}
    app.conf.redis_max_connections = max(
        app.conf.redis_max_connections or 0, max(lane.slots for lane in lanes.values()) + SPARE_CONNECTIONS
    )
    app.conf.broker_connection_retry_on_startup = True


def misrouted(app: Celery, lane_queues: Mapping[str, str]) -> list[str]:
    """List the tasks with a lane that the application itself sends elsewhere, one line each.

    Args:
        app: The application, its tasks registered.
        lane_queues: Queue by lane.
    """
    if not any(isinstance(one, _Router) for one in _routes(app.conf.task_routes)):
        return [
            "setting task_routes was replaced after Slackwater(app, ...), so no task reaches its lane; set it before"
        ]
    found = []
    for name, task in sorted(app.tasks.items()):
        lane = getattr(task, "lane", None)
        own = {"its option queue=": own_queue(task), "setting task_routes": routed_queue(app, name)}
        found += [
            f"task {name}: {what} sends it to {queue!r}, and its lane {lane!r} to {lane_queues[lane]!r}; "
            "drop the route, or the lane"
            for what, queue in own.items()
            if isinstance(lane, str) and lane in lane_queues and queue not in (None, lane_queues[lane])
        ]
    return found


def own_queue(task: Any) -> str | None:
    """Return the queue that a task asks for itself (`queue=`), which goes before every route; None if none."""
    return _name_of(getattr(task, "queue", None))


def routed_queue(app: Celery, name: str) -> str | None:
    """Return where the application's own routes send a task, lanes aside; None where they do not say.

    A router that is a function is asked with no arguments; one that cannot answer then is passed over.
    """
    own = [one for one in _routes(app.conf.task_routes) if not isinstance(one, _Router)]
    router: Any = Router(routes=prepare(own), app=app)
    try:
        route = router.lookup_route(name, (), {}, {}, app.tasks.get(name))
    except Exception:  # noqa: BLE001 - the application's own function, which may need the arguments of a real call
        return None
    if isinstance(route, Mapping):
        return _name_of(route.get("queue") or route.get("routing_key") or route.get("exchange"))
    return _name_of(route)


def _name_of(queue: Any) -> str | None:
    return None if queue is None else str(getattr(queue, "name", queue))


def _transport_options(app: Celery) -> dict[str, Any]:
    if is_redis(app):
        # Not a word on visibility: a worker owns what it takes, and sets that when it starts (see `owning`).
        return {"socket_keepalive": True}
    return {"confirm_publish": True}


def _other_queues(app: Celery, names: Mapping[str, str]) -> list[Queue]:
    given = app.conf.task_queues or ()
    queues = list(given.values()) if isinstance(given, Mapping) else list(given)
    return [queue for queue in queues if isinstance(queue, Queue) and queue.name not in names.values()]


def _routes(given: Any) -> list[Any]:
    if not given:
        return []
    return list(given) if isinstance(given, (list, tuple)) else [given]


class _Router:
    """Routes a task to its lane's queue; leaves a task without lane to the application's own routes."""

    def __init__(self, *, lanes: Mapping[str, Lane], names: Mapping[str, str], app: Celery) -> None:
        self._lanes, self._names, self._app = lanes, names, app

    def __call__(self, name: str, *_: Any, task: Any = None, **__: Any) -> dict[str, str] | None:
        known = task if task is not None else self._app.tasks.get(name)
        lane = getattr(known, "lane", None)
        return {"queue": self._names[lane]} if isinstance(lane, str) and lane in self._lanes else None

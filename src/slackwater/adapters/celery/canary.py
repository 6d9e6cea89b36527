"""The canary: a task that does nothing but say that its lane has run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import structlog
from celery import Celery
from kombu.exceptions import OperationalError

from slackwater.errors import BrokerUnavailable, StoreUnavailable
from slackwater.ports import Clock, Store

log = structlog.get_logger("slackwater.canaries")
NAME = "slackwater.canary"


def add_canary(app: Celery, *, store: Callable[[], Store], clock: Clock) -> None:
    """Add the task to an application."""

    def canary(self: Any, lane: str) -> None:
        try:
            store().canaries.answer(lane, at=clock.run(), worker=str(self.request.hostname))
        except StoreUnavailable as error:
            log.warning("canary ran, and nobody is told", lane=lane, error=str(error))

    make: Any = app.task(name=NAME, bind=True, shared=False, ignore_result=True)
    make(canary)


def sender_of(app: Celery, queues: Mapping[str, str]) -> Callable[[str], None]:
    """Return what publishes a lane's canary.

    Args:
        app: The application.
        queues: Queue by lane.
    """

    def send(lane: str) -> None:
        try:
            app.send_task(NAME, (lane,), queue=queues[lane], ignore_result=True)
        except (OperationalError, OSError) as error:
            raise BrokerUnavailable(f"canary of lane {lane}: {error}", outcome_unknown=True) from error

    return send

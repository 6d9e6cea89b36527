"""A worker's hands after a broken connection: what the broker says it has, and it knows nothing of.

On Valkey a delivery outlives its connection. A body that runs on is acknowledged over the next connection; but what was
fetched and not begun is forgotten by Celery then, and a hand-back that was on its way is lost. Such messages would lie
in the worker's hands for as long as it lives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import structlog
from celery.worker import state

from slackwater.adapters.celery.counting import settled
from slackwater.core.liveness import Owner
from slackwater.errors import StoreUnavailable
from slackwater.ports import Hands, Store

log = structlog.get_logger("slackwater.hands")


@dataclass(kw_only=True)
class OwnHands:
    """Puts back what this worker process holds without knowing it.

    Attributes:
        owner: It.
        hands: Looks at the broker, over a connection of this thread's own.
        consumer: Celery's consumer, whose connection and channel are new ones after each that was lost.
        store: Gives the store.
    """

    owner: Owner
    hands: Hands
    consumer: Any
    store: Callable[[], Store]
    _suspects: frozenset[str] = field(default=frozenset(), init=False)

    def look(self) -> int:
        """Put back what was unknown at this look and the one before; return how many messages.

        At two looks, as a message lies in the broker's hash a moment before the worker knows it.

        Raises:
            BrokerUnavailable: It does not answer; the next look finds the same.
        """
        delivered = self.hands.delivered(self.owner)
        # Nothing on RabbitMQ, whose channels keep no such account.
        known = self._known_tags() if delivered else None
        if known is None:
            self._suspects = frozenset()
            return 0
        unknown = [tag for tag in delivered if tag not in known]
        # Asked last: a body that began meanwhile is among them.
        jobs = self.hands.jobs_of(self.owner, unknown)
        held = set(_held_jobs())
        forgotten = {tag: job for tag, job in jobs.items() if job[0] not in held}
        again = {tag: job for tag, job in forgotten.items() if tag in self._suspects}
        self._suspects = frozenset(forgotten.keys() - again.keys())
        return self._put_back(again) if again else 0

    def _known_tags(self) -> frozenset[str] | None:
        """Return the tags that came over the current connection; None without one."""
        # Without a connection acknowledgements wait for the next one: what they are of is not forgotten.
        tasks = None if self.consumer.connection is None else self.consumer.task_consumer
        if tasks is None:
            return None
        return frozenset(map(str, settled(lambda: list(tasks.channel.qos._delivered))))

    def _put_back(self, forgotten: dict[str, tuple[str, int]]) -> int:
        try:
            # Nothing that a job did wrong: the next start of each is no new attempt.
            self.store().runs.hand_back(sorted(set(forgotten.values())), boot=self.owner.boot)
        except StoreUnavailable as error:
            log.warning("put back, counted as attempts", jobs=len(forgotten), error=str(error))
        count = self.hands.restore_these(self.owner, list(forgotten))
        log.warning("put back what a broken connection left", jobs=count)
        return count


def _held_jobs() -> Iterable[str]:
    for requests in (state.reserved_requests, state.active_requests, _scheduled()):
        yield from (str(one.id) for one in settled(lambda requests=requests: list(requests)))  # type: ignore[misc]


def _scheduled() -> Any:
    state_: Any = state  # the stubs leave it out
    return state_.scheduled_requests

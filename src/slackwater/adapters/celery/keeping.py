"""Keeping the messages of the jobs that a worker runs under a lease, for the day when its own copy goes with it.

The worker's main process does it, whatever its pool, with one statement for all that came to run since the last look: a
job's own start and end carry nothing for it, and of what is over before the second look nothing is written at all.
Beside presence and renewal, not among them: a worker that takes long to write large messages is not dead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID
from weakref import WeakSet

from slackwater.adapters.celery.counting import active_requests
from slackwater.adapters.celery.letters import waiting
from slackwater.adapters.celery.rules import arguments_of, delivery_of, rules_of
from slackwater.adapters.celery.verbatim import delivered
from slackwater.core.delivery import ask_of
from slackwater.core.lane import Lane
from slackwater.core.under_way import Offer
from slackwater.ports import Clock, Store

MOST_BYTES = 16_000_000
"""Of bodies in one statement; a message that is larger is not kept. RabbitMQ takes none above 16 MiB by itself."""


@dataclass(frozen=True, kw_only=True)
class Keeper:
    """Keeps what one worker process runs under a lease.

    Attributes:
        boot: Id of the process.
        lanes: By name.
        lane_of: Lane of a task, by its name.
        store: Gives the store.
        clock: The two clocks.
        lease_lives_for: Time-to-live of leases.
    """

    boot: UUID
    lanes: Mapping[str, Lane]
    lane_of: Callable[[str], str | None]
    store: Callable[[], Store]
    clock: Clock
    lease_lives_for: timedelta
    _seen: WeakSet[Any] = field(default_factory=WeakSet, init=False)
    _settled: WeakSet[Any] = field(default_factory=WeakSet, init=False)

    def look(self) -> None:
        """Keep each job that runs since the last look; what the store does not know as running is offered again.

        A request of Celery's is one delivery, and so one start: the next one of the same job is looked at anew.

        Raises:
            StoreUnavailable: What was not kept by then is offered again.
        """
        offers: list[tuple[Any, Offer]] = []
        for request in active_requests():
            if request in self._settled:
                continue
            if request not in self._seen:
                self._seen.add(request)
            elif (offer := self._offer(request)) is None:
                self._settled.add(request)
            else:
                offers.append((request, offer))
        for part in _parts(offers):
            kept = {start[:2] for start in self.store().runs.keep(self.boot, [offer for _, offer in part])}
            self._settled.update(request for request, offer in part if (offer.job, offer.tries) in kept)

    def _offer(self, request: Any) -> Offer | None:
        """Return what is to be kept of a delivery; None for one that takes no lease."""
        known, task = delivered(request), request.task
        delivery, rules = delivery_of(str(request.id), task, known), rules_of(task, self.lanes)
        try:
            ask = ask_of(
                delivery,
                rules,
                arguments_of(task, request.args, request.kwargs) if rules.parameters else {},
                boot=self.boot,
                calendar=self.clock.calendar(),
                lease_lives_for=self.lease_lives_for,
            )
        except (TypeError, ValueError):
            return None  # its guard has said so, and started it without
        if ask is None or ask.lease is None:
            return None
        message = waiting(known)
        return Offer(
            job=ask.job,
            tries=ask.tries,
            task=ask.task,
            lane=self.lane_of(ask.task),
            lease=ask.lease.name,
            key=None if ask.key is None else ask.key.name,
            message=message if len(message.body) <= MOST_BYTES else None,
        )


def _parts(offers: Sequence[tuple[Any, Offer]]) -> Iterator[list[tuple[Any, Offer]]]:
    """Return the offers in parts that a statement can carry: one, nearly always."""
    part: list[tuple[Any, Offer]] = []
    total = 0
    for request, offer in offers:
        size = 0 if offer.message is None else len(offer.message.body)
        if part and total + size > MOST_BYTES:
            yield part
            part, total = [], 0
        part.append((request, offer))
        total += size
    if part:
        yield part

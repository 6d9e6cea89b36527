"""Paused lanes in a worker: it stops consuming their queues, and consumes again when the pause is over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from slackwater.ports import Clock, Store

log = structlog.get_logger("slackwater.pausing")


@dataclass(kw_only=True)
class Pausing:
    """Has one worker obey the pauses that the store knows.

    What it has in its hands already runs. A pause that is over counts no more, also while no balancer lives to take it
    away. While the store is away nothing changes.

    Attributes:
        consumer: Celery's consumer, whose connection and channel are new ones after each that was lost.
        queues: Queue by lane, of the lanes that it consumed when it became ready.
        store: Gives the store.
        clock: The two clocks.
    """

    consumer: Any
    queues: Mapping[str, str]
    store: Callable[[], Store]
    clock: Clock
    _paused: frozenset[str] = field(default=frozenset(), init=False)

    @property
    def paused(self) -> frozenset[str]:
        """Return the lanes of this worker that are paused."""
        return self._paused

    def obey(self) -> None:
        """Look, and stop or start consuming.

        Raises:
            StoreUnavailable: Nothing is changed.
        """
        now = self.clock.run()
        found = {one.lane: one for one in self.store().dead_letters.pauses() if one.until > now}
        before, self._paused = self._paused, frozenset(found.keys() & self.queues.keys())
        for lane in sorted(self._paused - before):
            log.warning("lane paused here", lane=lane, reason=found[lane].reason)
        for lane in sorted(before - self._paused):
            log.warning("lane consumed again", lane=lane)
        # All of them each time: a connection that was lost meanwhile may have undone it.
        for lane in self._paused | before:
            self._consume(self.queues[lane], wanted=lane not in self._paused)

    def _consume(self, queue: str, *, wanted: bool) -> None:
        consumer = self.consumer

        def change() -> None:
            tasks = consumer.task_consumer
            if tasks is None or bool(tasks.consuming_from(queue)) is wanted:
                return
            # By its name, so that it is declared as it was: a quorum queue refuses to be declared otherwise.
            (consumer.add_task_queue if wanted else consumer.cancel_task_queue)(queue)

        # In the worker's own loop: a channel is not safe for threads.
        consumer.call_soon(change)

"""How a worker process leaves: what it has in its hands goes back, not as an attempt, and its threads do not hold it.

Celery says `worker_shutdown` at a warm shutdown alone. At a cold one (SIGQUIT, or SIGTERM remapped to it) the bodies of
a prefork pool are ended; those of threads cannot be, and Celery would wait for them as long as they take.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import structlog
from celery.concurrency.thread import TaskPool as ThreadPool
from celery.worker import state

from slackwater.adapters.celery.counting import settled
from slackwater.adapters.celery.heartbeating import beating

log = structlog.get_logger("slackwater.leaving")
COLD = "Cold"
EX_FAILURE = 1


@dataclass(kw_only=True)
class Leaving:
    """Follows one worker process on its way out.

    Attributes:
        hand_back: Records that deliveries (job and try) go back; called before they are back.
        farewell: Ends what lives beside the bodies, and puts back what is left.
    """

    hand_back: Callable[[Iterable[tuple[str, int]]], None]
    farewell: Callable[[], None]
    _cold: bool = field(default=False, init=False)
    _in_hands: list[Any] = field(default_factory=list, init=False)
    _pool: Any = field(default=None, init=False)

    def follow(self, worker: Any) -> None:
        """Have a cold shutdown of Celery's worker say farewell too."""
        stock = worker.terminate

        def terminate(*args: Any, **kwargs: Any) -> None:
            self.hand_back(self.left())
            stock(*args, **kwargs)
            self.farewell()
            if isinstance(self._pool, ThreadPool) and self.left():
                # Python itself would wait for the threads: their jobs are handed back already.
                log.warning("left, with bodies under way that are handed back", jobs=len(self.left()))
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(worker.exitcode or EX_FAILURE)

        worker.terminate = terminate
        soft = worker.wait_for_soft_shutdown

        def wait_for_soft_shutdown(*args: Any, **kwargs: Any) -> None:
            with beating(worker.consumer):
                soft(*args, **kwargs)
            # Celery tells of a cold shutdown only after it has cancelled what runs.
            self.begins(COLD)

        worker.wait_for_soft_shutdown = wait_for_soft_shutdown

    def follow_pool(self, pool: Any, *, consumer: Any) -> None:
        """Have a cold shutdown not wait for a pool of threads, and a warm one keep their deliveries meanwhile.

        Args:
            pool: Of the worker.
            consumer: Celery's, whose connection holds the deliveries.
        """
        self._pool = pool
        if not isinstance(pool, ThreadPool):
            return
        threads: Any = pool  # the stubs leave the executor out
        stop, terminate_job = threads.on_stop, threads.terminate_job

        def on_stop() -> None:
            if self._cold:
                threads.executor.shutdown(wait=False, cancel_futures=True)
            else:
                with beating(consumer):
                    stop()

        def end_job(*args: Any, **kwargs: Any) -> None:
            # It cannot, and raises: which would turn the cold shutdown into a warm one that waits for the body.
            if not self._cold:
                terminate_job(*args, **kwargs)

        threads.on_stop, threads.terminate_job = on_stop, end_job

    def begins(self, how: str) -> None:
        """Note that the worker leaves: warm, or cold. What Celery then cancels it forgets, so it is kept here."""
        self._cold = self._cold or how == COLD
        self._in_hands += settled(lambda: list(state.reserved_requests))

    def left(self) -> list[tuple[str, int]]:
        """Return the deliveries (job and try) that are not acknowledged."""
        requests = {id(one): one for one in (*self._in_hands, *settled(lambda: list(state.reserved_requests)))}
        return sorted(
            {
                (str(one.id), int(one.request_dict.get("retries") or 0))
                for one in requests.values()
                if not one.acknowledged
            }
        )

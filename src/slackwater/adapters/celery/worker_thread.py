"""Threads of ours in a worker's main process: each acts every so often, beside Celery's own loop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import structlog

from slackwater.engine.outage import Outage
from slackwater.errors import SlackwaterError

log = structlog.get_logger("slackwater.worker")
FAREWELL_S = 5.0


@dataclass(kw_only=True)
class WorkerThread:
    """Acts at once, then every so often and whenever there is news, until it is stopped.

    Attributes:
        name: Of the thread, and in the log.
        every: How often.
        act: What it does; a server that does not answer is told once, and whatever it raises, it goes on.
        news: Set by whoever wants it to act sooner.
    """

    name: str
    every: timedelta
    act: Callable[[], object]
    news: threading.Event = field(default_factory=threading.Event)
    _stopped: bool = field(default=False, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name=f"slackwater-{self.name}", daemon=True)
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Have it end after what it does just now; safe in a signal's handler."""
        self._stopped = True

    def stop(self) -> None:
        """Stop it, and wait for what it does just now."""
        self.ask_to_stop()
        self.news.set()
        if self._thread is not None:
            self._thread.join(FAREWELL_S)

    def _run(self) -> None:
        outage = Outage("cannot work, keeps trying")
        while not self._stopped:
            try:
                self.act()
            except SlackwaterError as error:
                outage.failed(error, thread=self.name)
            except Exception:  # a mistake of ours must not end what keeps the worker's leases alive
                log.exception("thread failed, goes on", thread=self.name)
            else:
                outage.worked(thread=self.name)
            self.news.wait(self.every.total_seconds())
            self.news.clear()

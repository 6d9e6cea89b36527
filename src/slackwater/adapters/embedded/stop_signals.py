"""SIGINT, SIGTERM and SIGHUP as a value that loops look at, instead of an exception anywhere."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from datetime import timedelta
from types import FrameType, TracebackType
from typing import Any, Self

_CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopSignals:
    """Catch the signals that ask this process to stop, while the context is open. For the main thread.

    Attributes:
        received: What came, in order.
    """

    def __init__(self) -> None:
        self.received: list[signal.Signals] = []
        self._before: dict[signal.Signals, Any] = {}
        self._pipe: tuple[int, int] | None = None

    @property
    def requested(self) -> bool:
        """Tell whether this process was asked to stop."""
        return bool(self.received)

    def wait(self, timeout: timedelta) -> bool:
        """Wait until a signal comes, or the time is over; return whether this process was asked to stop."""
        if not self.requested and self._pipe is not None:
            select.select([self._pipe[0]], [], [], timeout.total_seconds())
        return self.requested

    def __enter__(self) -> Self:
        # A pipe, since an Event that is set from a handler may deadlock with the wait that the handler interrupted.
        self._pipe = os.pipe()
        os.set_blocking(self._pipe[1], False)
        self._before = {each: signal.signal(each, self._note) for each in _CAUGHT}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler if handler is not None else signal.SIG_DFL)
        for end in self._pipe or ():
            os.close(end)
        self._pipe = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received.append(signal.Signals(number))
        if self._pipe is not None:
            with suppress(BlockingIOError):
                os.write(self._pipe[1], b".")
        # Within another's block that one hears it too: what ends soon must not swallow what was meant for all.
        before = self._before.get(signal.Signals(number))
        if before is not None and isinstance(getattr(before, "__self__", None), StopSignals):
            before(number, frame)

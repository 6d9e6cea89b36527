"""A body's successor: the message that a retry or a replacement sends under the running job's own id.

Celery sends it while the body still runs. The successor may then end before the first run's RETRY is written, which
goes over its SUCCESS, and the job never ends. And a broker that is gone at that moment loses the job. So it is held
back until the tracer has stored how the first run ended; what cannot be sent then returns the delivery to its queue.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from kombu.exceptions import EncodeError

Send = Callable[[], None]


class Successors:
    """Holds back what the body in this thread sends under its own id."""

    def __init__(self) -> None:
        self._thread = threading.local()

    @contextmanager
    def held(self) -> Iterator[list[Send]]:
        """Hold successors back within the block; an error leaves them unsent, as the delivery comes again."""
        held: list[Send] = []
        self._thread.held = held
        try:
            yield held
        finally:
            self._thread.held = None

    @contextmanager
    def delayed(self, after: timedelta) -> Iterator[None]:
        """Say how much later than now the successors that are sent within the block shall run."""
        self._thread.after = after
        try:
            yield
        finally:
            self._thread.after = timedelta(0)

    @property
    def after(self) -> timedelta:
        """Return how much later than now a successor shall run."""
        after: timedelta = getattr(self._thread, "after", timedelta(0))
        return after

    def hold(self, send: Send) -> bool:
        """Keep a successor for later; False where nobody will send it later."""
        held: list[Send] | None = getattr(self._thread, "held", None)
        if held is None:
            return False
        held.append(send)
        return True


@dataclass(frozen=True)
class Unsent:
    """A successor that could not be sent.

    Attributes:
        error: Why.
        again: Whether another try may help: not for arguments that cannot be encoded.
    """

    error: Exception
    again: bool


def send_all(held: list[Send]) -> Unsent | None:
    """Send what was held back; return the first that could not be sent."""
    for send in held:
        try:
            send()
        except Exception as error:  # noqa: BLE001  # whatever the broker's client raises
            return Unsent(error, again=not isinstance(error, EncodeError))
    return None

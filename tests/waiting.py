"""Waiting for what is to come about: an event with a deadline, never a sleep."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

POLL_S = 0.05


def eventually(holds: Callable[[], Any], *, within_s: float, otherwise: Callable[[], str] = str) -> Any:
    """Wait until something holds, and return it; fail at the deadline, saying how things stand.

    A suite sets its own bound once: `eventually = partial(waiting.eventually, within_s=...)`.
    """
    until = time.monotonic() + within_s
    while not (found := holds()):
        assert time.monotonic() < until, f"not within {within_s} s: {otherwise()}"
        time.sleep(POLL_S)
    return found

"""The id of a worker process: drawn at its start, before its pool is forked, so that its children share it."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

_BOOT = "slackwater_boot"


def boot_of(app: Any) -> UUID:
    """Return this process's id for an application."""
    # Drawn only where there is none: each delivery asks.
    boot: UUID = app.__dict__.get(_BOOT) or app.__dict__.setdefault(_BOOT, uuid4())
    return boot


def new_boot(app: Any) -> UUID:
    """Draw a new id: a worker starts in this process."""
    boot = app.__dict__[_BOOT] = uuid4()
    return boot

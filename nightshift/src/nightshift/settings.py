"""Nightshift's settings: one frozen object, read from the environment in one place."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Self

from nightshift.errors import NightError

PREFIX = "NIGHTSHIFT_"


class Plan(StrEnum):
    """Where the heavy sweep stands in the night."""

    SHIFTED = "shifted"
    """After the bank window: the shift that a person once made by hand."""
    COLLIDE = "collide"
    """In the middle of the bank window, as it had drifted before."""


@dataclass(frozen=True, kw_only=True)
class NightSettings:
    """What nightshift's processes share.

    Attributes:
        plan: Where the heavy sweep stands.
        prefix: Keeps one night's queues, results and keys apart from another's on the same broker.
        world_url: The outside world.
        credentials: File of what nightshift shows at its peers: its application id and private key.
        folder: The night's folder: receipts and journals.
        calls_per_second: The aggregator's rate limit.
        sync_slots: Slots of the network lane.
        readers: Processes that read receipts.
        ends_at: Last instant of the calendar at which anything is due: its workers may need longer than the night.
        call_timeout_s: How long a call to a peer may hang, in seconds of real time.
    """

    plan: Plan = Plan.SHIFTED
    prefix: str = ""
    world_url: str = "http://127.0.0.1:8600"
    credentials: Path = Path(".nightshift/application.json")
    folder: Path = Path(".nightshift")
    calls_per_second: float = 12.0
    sync_slots: int = 64
    readers: int = 2
    ends_at: datetime | None = None
    call_timeout_s: float = 60.0

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read `NIGHTSHIFT_*`.

        Raises:
            NightError: An unknown name (with the nearest known one), or a value that cannot be.
        """
        readers = {PREFIX + one.name.upper(): one.name for one in fields(cls)}
        values: dict[str, object] = {}
        for variable in sorted(name for name in environ if name.startswith(PREFIX)):
            if variable not in readers:
                near = difflib.get_close_matches(variable, readers, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(readers)}"
                raise NightError(f"environment: {variable} is no setting; {hint}")
            values[readers[variable]] = _read(variable, readers[variable], environ[variable])
        return cls(**values)  # type: ignore[arg-type]

    def environment(self) -> dict[str, str]:
        """Return the environment from which `from_environment` reads the same settings."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        return {PREFIX + name.upper(): str(value) for name, value in given.items() if value is not None}


_KINDS: dict[str, Callable[[str], object]] = {
    "plan": Plan,
    "folder": Path,
    "credentials": Path,
    "calls_per_second": float,
    "sync_slots": int,
    "readers": int,
    "ends_at": datetime.fromisoformat,
    "call_timeout_s": float,
}


def _read(variable: str, name: str, text: str) -> object:
    try:
        return _KINDS.get(name, str)(text)
    except ValueError as error:
        raise NightError(f"environment: {variable}={text!r}: {error}") from error

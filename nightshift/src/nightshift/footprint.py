"""A night's traces on servers that are not ours, written down for as long as they are there.

A night that is killed cannot take its database and keys away; the next one in its folder reads here what they are
called and does it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from nightshift.ground import clear_broker, drop_database
from slackwater.local import masked

FILE = "on-given-servers.json"


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """What a night puts on given servers.

    Attributes:
        database: Name of its database.
        prefix: Of its queues and keys.
        queues: Its queues, by name.
        store: Address of the given database server, passwords masked; None where it is ours.
        broker: Likewise, of the broker.
    """

    database: str
    prefix: str
    queues: tuple[str, ...]
    store: str | None
    broker: str | None

    def write(self, folder: Path) -> None:
        """Write it down in the night's folder, before anything is put anywhere."""
        (folder / FILE).write_text(json.dumps(asdict(self), indent=1) + "\n")


def read(folder: Path) -> Footprint | None:
    """Return what a night wrote down and did not take away; None where there is nothing."""
    with suppress(OSError, ValueError, TypeError):
        content = json.loads((folder / FILE).read_text())
        return Footprint(**{**content, "queues": tuple(content["queues"])})
    return None


def forget(folder: Path) -> None:
    """Strike it out: nothing is left on any server, or somebody was told."""
    (folder / FILE).unlink(missing_ok=True)


def clean(folder: Path, *, store_url: str | None, broker_url: str | None, tell: Callable[[str], None]) -> None:
    """Take away what a killed night in this folder left on given servers, if they are given again.

    Args:
        folder: The night's folder.
        store_url: The database server that is given now.
        broker_url: The broker that is given now.
        tell: Told what was taken away, or where something is left.
    """
    if (left := read(folder)) is None:
        return
    if left.store is not None and store_url is not None and masked(store_url) == left.store:
        if drop_database(store_url, left.database, left_behind=tell):
            tell(f"dropped database {left.database} of a killed night from {left.store}")
    elif left.store is not None:
        tell(f"note: a killed night left database {left.database} on {left.store}; drop it there")
    if left.broker is not None and broker_url is not None and masked(broker_url) == left.broker:
        if clear_broker(broker_url, prefix=left.prefix, queues=left.queues, left_behind=tell):
            tell(f"removed queues and keys {left.prefix}* of a killed night from {left.broker}")
    elif left.broker is not None:
        tell(f"note: a killed night left queues and keys {left.prefix}* on {left.broker}; delete them there")
    forget(folder)

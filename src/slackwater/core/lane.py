"""Lanes: bulkhead queues, each with its own pool."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from slackwater.core.resource import Resource, ResourceKind
from slackwater.core.retry import Backoff
from slackwater.errors import ConfigurationError

NICE_OF_HEAVY_WORK = 10
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


class Pool(StrEnum):
    """Celery's worker pools that a lane may have."""

    PREFORK = "prefork"
    THREADS = "threads"
    GEVENT = "gevent"
    SOLO = "solo"


@dataclass(frozen=True)
class Lane:
    """A bulkhead queue: work that waits on the same things, with a pool of its own.

    Attributes:
        name: Also the queue's name (lower case, digits, underscores).
        slots: Jobs that one worker process runs at once.
        pool: Where the bodies run; by default prefork where the lane waits on the host, else threads.
        waits_on: The resources that its work waits on.
        protected: The lane must not be disturbed by elastic work.
        reserved: Slots that elastic work never uses.
        backoff: How its failed jobs are tried again, where a task says nothing else; None: not by us.
        retry_on: Kinds of errors that may pass by themselves; None for all.

    Raises:
        ValueError: A name, a count or a pool that cannot be.
    """

    name: str
    slots: int
    pool: Pool | str | None = None
    waits_on: Sequence[Resource] = ()
    protected: bool = False
    reserved: int = 0
    backoff: Backoff | None = None
    retry_on: Sequence[type[BaseException]] | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"lane {self.name!r}: a name is lower case letters, digits and underscores, at most 63")
        if self.slots < 1:
            raise ValueError(f"lane {self.name!r}: slots must be at least 1, not {self.slots}")
        if not 0 <= self.reserved <= self.slots:
            raise ValueError(
                f"lane {self.name!r}: reserved must be between 0 and slots ({self.slots}), not {self.reserved}"
            )
        object.__setattr__(self, "waits_on", tuple(self.waits_on))
        object.__setattr__(self, "pool", self._pool())

    def _pool(self) -> Pool:
        if self.pool is None:
            return Pool.PREFORK if self.waits_on_host else Pool.THREADS
        try:
            return Pool(self.pool)
        except ValueError:
            choices = ", ".join(Pool)
            raise ValueError(f"lane {self.name!r}: pool {self.pool!r} is not one of {choices}") from None

    @property
    def waits_on_host(self) -> bool:
        """Tell whether its work waits on the host's cores or memory."""
        return any(resource.kind is ResourceKind.HOST for resource in self.waits_on)

    @property
    def niceness(self) -> int:
        """Return the scheduling priority of its processes (nice, 0 to 19).

        Unprotected work that waits on the host's cores yields them: without it, one reader of receipts is as entitled
        to a core as the worker that a person waits for.
        """
        return NICE_OF_HEAVY_WORK if self.waits_on_host and not self.protected else 0


def by_name(lanes: Iterable[Lane]) -> Mapping[str, Lane]:
    """Index lanes by name.

    Raises:
        ConfigurationError: None given, or two of one name.
    """
    index: dict[str, Lane] = {}
    for lane in lanes:
        if lane.name in index:
            raise ConfigurationError(f"lane {lane.name!r} is given twice; give each lane once")
        index[lane.name] = lane
    if not index:
        raise ConfigurationError("no lanes given; give Slackwater(app, lanes=[Lane(...), ...]) at least one")
    return index


def find(lanes: Mapping[str, Lane], name: str, *, asked_by: str) -> Lane:
    """Return the lane of that name.

    Raises:
        ConfigurationError: There is none; names the nearest.
    """
    if (lane := lanes.get(name)) is not None:
        return lane
    near = difflib.get_close_matches(name, lanes, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(lanes)}"
    raise ConfigurationError(f"{asked_by}: no lane is named {name!r}; {hint}")

"""All that is kept, in parts."""

from __future__ import annotations

from typing import Protocol

from slackwater.ports.bundles import BundleStore
from slackwater.ports.delivery import RunStore
from slackwater.ports.held import HoldStore
from slackwater.ports.recovery import DeadLetterStore, SweepStore
from slackwater.ports.schedule import EndingStore, FanOutStore, OccurrenceStore
from slackwater.ports.sensed import CanaryStore, PresenceStore, ReadingStore


class Store(Protocol):
    """All that is kept, in parts."""

    @property
    def occurrences(self) -> OccurrenceStore: ...  # noqa: D102 - the part's own docstring says it
    @property
    def fan_outs(self) -> FanOutStore: ...  # noqa: D102
    @property
    def endings(self) -> EndingStore: ...  # noqa: D102
    @property
    def presence(self) -> PresenceStore: ...  # noqa: D102
    @property
    def canaries(self) -> CanaryStore: ...  # noqa: D102
    @property
    def readings(self) -> ReadingStore: ...  # noqa: D102
    @property
    def runs(self) -> RunStore: ...  # noqa: D102
    @property
    def holds(self) -> HoldStore: ...  # noqa: D102
    @property
    def bundles(self) -> BundleStore: ...  # noqa: D102
    @property
    def dead_letters(self) -> DeadLetterStore: ...  # noqa: D102
    @property
    def sweeps(self) -> SweepStore: ...  # noqa: D102

    def check(self) -> None:
        """Make sure that it answers and is of this program's version.

        Raises:
            StoreUnavailable: It does not answer.
            SchemaOutdated: It does, with another version's tables.
        """
        ...

    def migrate(self) -> None:
        """Bring it to this program's version; safe from several processes at once."""
        ...

    def release_connections(self) -> None:
        """Drop pooled connections without closing them: for a process that has just been forked."""
        ...

    def close(self) -> None:
        """Close its connections."""
        ...

"""The broker and the result backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from slackwater.core.job import JobState
from slackwater.core.occurrence import Occurrence
from slackwater.core.reading import QueueReading


class Publisher(Protocol):
    """Hands the parent job of an occurrence to the broker."""

    def publish(self, occurrence: Occurrence) -> None:
        """Publish under the occurrence's id; at least once, so repeating is safe for whoever guards by id.

        Raises:
            BrokerUnavailable: Not confirmed; `outcome_unknown` tells whether it may have been sent.
        """
        ...


class Gauge(Protocol):
    """Reads queues from the broker."""

    def read(self, queues: Sequence[str]) -> Mapping[str, QueueReading]:
        """Return what the broker says of each queue; one that it does not know has nothing ready.

        Raises:
            BrokerUnavailable: The broker does not answer.
        """
        ...

    def close(self) -> None:
        """Close its connection."""
        ...


class Results(Protocol):
    """States of jobs as the result backend knows them."""

    def states(self, jobs: Sequence[str]) -> Mapping[str, JobState]:
        """Return the states of those that it knows."""
        ...

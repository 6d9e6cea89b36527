"""The broker and the result backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from slackwater.core.job import JobState
from slackwater.core.liveness import Owner
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


class Hands(Protocol):
    """What one worker process has in its hands, for itself to look at; a message is named by its delivery tag.

    All acts raise `BrokerUnavailable` where the broker does not answer.
    """

    def delivered(self, owner: Owner) -> Sequence[str]:
        """Return the tags of all that is delivered to an owner and not acknowledged."""
        ...

    def jobs_of(self, owner: Owner, tags: Sequence[str]) -> Mapping[str, tuple[str, int]]:
        """Return the job and the try of each of these messages that is still there."""
        ...

    def restore_these(self, owner: Owner, tags: Sequence[str]) -> int:
        """Put these messages back as `Recovery.restore` does; return how many."""
        ...


class Recovery(Protocol):
    """What worker processes have in their hands, and how it goes back when they are dead.

    On a broker that redelivers by itself there are no owners.

    All acts raise `BrokerUnavailable` where the broker does not answer.
    """

    def enter(self, owner: Owner) -> None:
        """Write a worker process into the registry of owners; repeating changes nothing."""
        ...

    def owners(self) -> Mapping[Owner, int]:
        """Return the owners, each with its count of messages that are delivered and not acknowledged."""
        ...

    def connections(self, owner: Owner) -> int | None:
        """Return how many connections of an owner the broker sees; None where it cannot tell."""
        ...

    def restore(self, owner: Owner) -> int:
        """Put all messages of an owner back into their queues, flagged as redelivered; return how many.

        Each goes back once, in one step: repeating, also from several processes at once or after a crash in the
        middle, loses nothing and doubles nothing.
        """
        ...

    def forget(self, owner: Owner) -> bool:
        """Strike off an owner that has no messages, with what is left of its keys; False where it has some."""
        ...

    def close(self) -> None:
        """Close its connection."""
        ...

"""The errors of Slackwater.

    SlackwaterError
    ├── ConfigurationError     what the application or its settings ask for cannot be
    ├── ScheduleError          an entry that no process can run
    ├── StoreUnavailable       the database does not answer
    ├── SchemaOutdated         the database answers, with another version's tables
    ├── BrokerUnavailable      the broker does not answer; `outcome_unknown` tells whether something may have been sent
    ├── StaleFence             another job has the lease by now; nothing may be committed
    ├── PoisonedJob            a job was taken out of circulation: its body never came to an end
    ├── LostJob                nobody will ever end a job of a group or chord, as nobody has its message
    └── LocalServiceError      an embedded server, a child process or a run folder failed

Each is one sentence: what, where, and the remedy; its facts are attributes. Outcomes that are to be expected (a job
that is late, an occurrence that exists) are return values, not errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class SlackwaterError(Exception):
    """Root of all errors that Slackwater raises itself."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        # A worker that cannot read what one of its pool's processes sends takes that process for dead; Python's own way
        # would call the class with its sentence alone.
        return _arrived, (type(self), self.args), self.__dict__


class ConfigurationError(SlackwaterError):
    """The application or its settings ask for what cannot be.

    Attributes:
        findings: Each thing found, one line each, with its remedy.
    """

    def __init__(self, *findings: str) -> None:
        super().__init__("; ".join(findings))
        self.findings = findings


class ScheduleError(ConfigurationError):
    """An entry of the schedule that no process can run."""


class StoreUnavailable(SlackwaterError):
    """The store does not answer.

    Attributes:
        where: The store's address, password masked.
    """

    def __init__(self, message: str, *, where: str) -> None:
        super().__init__(message)
        self.where = where


class SchemaOutdated(SlackwaterError):
    """The store's tables are of another version than this program."""


class BrokerUnavailable(SlackwaterError):
    """The broker does not answer.

    Attributes:
        outcome_unknown: True where the message may have been sent before the failure.
    """

    def __init__(self, message: str, *, outcome_unknown: bool = False) -> None:
        super().__init__(message)
        self.outcome_unknown = outcome_unknown


class StaleFence(SlackwaterError):
    """The lease under which a body runs has gone on: what it still wants to commit must not be.

    Attributes:
        lease: Its name.
        fence: The fencing token that is stale.
    """

    def __init__(self, lease: str, fence: int) -> None:
        super().__init__(
            f"lease {lease}: fence {fence} is stale, another may hold it by now; roll back and end the job"
        )
        self.lease = lease
        self.fence = fence


class PoisonedJob(SlackwaterError):
    """A job was taken out of circulation: its body was started as often as allowed, and never came to an end."""


class LostJob(SlackwaterError):
    """Nobody will ever end a job of a group or chord: its message is nowhere. Stands in its result, for who waits."""


class LocalServiceError(SlackwaterError):
    """An embedded server, a child process or a run folder failed."""


def _arrived(kind: type[SlackwaterError], args: tuple[Any, ...]) -> SlackwaterError:
    return kind.__new__(kind, *args)

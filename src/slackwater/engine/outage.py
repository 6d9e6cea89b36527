"""Outages: something does not answer for a while, which is said once, and once more when it is over."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

log = structlog.get_logger("slackwater.outage")


@dataclass
class Outage:
    """A run of failures of one kind.

    Attributes:
        sentence: What is said when it begins.
        lasts: It has begun, and is not over.
    """

    sentence: str
    lasts: bool = False

    def failed(self, error: Exception, **facts: str) -> None:
        """Say it, if it is the first of the run."""
        if not self.lasts:
            log.warning(self.sentence, error=str(error), **facts)
        self.lasts = True

    def worked(self, **facts: str) -> None:
        """Say that it is over, if there was one."""
        if self.lasts:
            log.warning("works again", after=self.sentence, **facts)
        self.lasts = False

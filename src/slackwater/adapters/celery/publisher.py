"""Publishes the parent jobs of occurrences through Celery."""

from __future__ import annotations

from dataclasses import dataclass

from celery import Celery
from kombu.exceptions import OperationalError

from slackwater.core.job import HEADER, Mark
from slackwater.core.occurrence import Occurrence
from slackwater.errors import BrokerUnavailable
from slackwater.ports import Clock

PUBLISH_RETRY = {"max_retries": 1, "interval_start": 0.1, "interval_step": 0.1, "interval_max": 0.2}


@dataclass(frozen=True, kw_only=True)
class CeleryPublisher:
    """The `Publisher` over an application."""

    app: Celery
    clock: Clock

    def publish(self, occurrence: Occurrence) -> None:
        """Publish an occurrence's parent job under the occurrence's id.

        Raises:
            BrokerUnavailable: Not confirmed; it may have been sent.
        """
        mark = Mark(
            published_at=self.clock.run(),
            lane=occurrence.lane,
            start_by=occurrence.start_by,
            occurrence=occurrence.id,
            elastic=occurrence.elastic,
        )
        try:
            self.app.send_task(
                occurrence.task,
                args=list(occurrence.args),
                kwargs=dict(occurrence.kwargs),
                task_id=str(occurrence.id),
                headers={HEADER: mark.to_header()},
                retry=True,
                retry_policy=PUBLISH_RETRY,
            )
        except (OperationalError, OSError) as error:
            raise BrokerUnavailable(
                f"occurrence of {occurrence.entry} not published: the broker does not answer ({error})",
                outcome_unknown=True,
            ) from error

"""What a task says of its delivery: key, lease, attempts, retries; and what one job asks for by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from uuid import UUID

from slackwater.core.admission import Ask, KeyRule, LeaseRule, WhenTaken, key_lease
from slackwater.core.job import Mark
from slackwater.core.retry import RetryPolicy
from slackwater.core.template import NameTemplate

ATTEMPTS = 3


@dataclass(frozen=True, kw_only=True)
class DeliveryRules:
    """A task's rules of delivery.

    Attributes:
        key: Idempotency key; None for none.
        fresh_for: How long a success counts (calendar clock); None: as long as the key is kept.
        key_taken: What a repeat does while the first is under way.
        lease: Mutual exclusion; None for none but the key's own.
        lease_taken: What a job does while another has the lease.
        attempts: Started deliveries that one try may have.
        retry: What is tried again, and when; None for what the task's own code does.
    """

    key: NameTemplate | None = None
    fresh_for: timedelta | None = None
    key_taken: WhenTaken = WhenTaken.SKIP
    lease: NameTemplate | None = None
    lease_taken: WhenTaken = WhenTaken.WAIT
    attempts: int = ATTEMPTS
    retry: RetryPolicy | None = None

    @cached_property
    def parameters(self) -> frozenset[str]:
        """Return the task's parameters that its key and lease need."""
        return frozenset().union(*(one.parameters for one in (self.key, self.lease) if one is not None))

    def key_rule(self, mark: Mark | None, arguments: Mapping[str, Any], *, calendar: datetime) -> KeyRule | None:
        """Return a job's key: the one in its mark, else the one by its arguments; None for none.

        Raises:
            ValueError: The arguments do not give the name.
        """
        name = mark.key if mark is not None and mark.key else None
        if name is None and self.key is not None:
            name = self.key.name(arguments)
        if name is None:
            return None
        fresh_since = None if self.fresh_for is None else calendar - self.fresh_for
        return KeyRule(name=name, fresh_since=fresh_since, when_taken=self.key_taken)

    def lease_rule(
        self, mark: Mark | None, arguments: Mapping[str, Any], *, key: KeyRule | None, lives_for: timedelta
    ) -> LeaseRule | None:
        """Return a job's lease: its mark's, its task's, or its key's own; None for none.

        Raises:
            ValueError: The arguments do not give the name.
        """
        if mark is not None and mark.lease:
            return LeaseRule(name=mark.lease, when_taken=self.lease_taken, lives_for=lives_for)
        if self.lease is not None:
            return LeaseRule(name=self.lease.name(arguments), when_taken=self.lease_taken, lives_for=lives_for)
        if key is None:
            return None
        return LeaseRule(name=key_lease(key.name), when_taken=key.when_taken, lives_for=lives_for)


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """One delivery of a job to a worker.

    Attributes:
        job: Its id.
        task: Its task's name.
        tries: Which try it is, from 0 (Celery's `retries`).
        mark: What it carries; None for a foreign message.
        redelivered: The broker's flag.
    """

    job: str
    task: str
    tries: int
    mark: Mark | None
    redelivered: bool

    @property
    def is_parent(self) -> bool:
        """Tell whether it is an occurrence's parent job, which has the occurrence's id."""
        return self.mark is not None and self.mark.occurrence is not None and str(self.mark.occurrence) == self.job

    @property
    def may_be_a_copy(self) -> bool:
        """Tell whether a second message of it may come without the broker's flag.

        A crash between publishing and recording that publishes again: a schedule's parent job, and what is released
        from the store.
        """
        return self.is_parent or (self.mark is not None and self.mark.released)


def ask_of(
    delivery: Delivery,
    rules: DeliveryRules,
    arguments: Mapping[str, Any],
    *,
    boot: UUID,
    calendar: datetime,
    lease_lives_for: timedelta,
) -> Ask | None:
    """Return what a delivery has to ask the store before its body; None for a plain first one, which just starts.

    Args:
        delivery: What came.
        rules: Its task's.
        arguments: The body's arguments by name, for the names of key and lease.
        boot: The worker process.
        calendar: Calendar clock.
        lease_lives_for: Time-to-live of leases.

    Raises:
        ValueError: The arguments do not give the key's or the lease's name.
    """
    key = rules.key_rule(delivery.mark, arguments, calendar=calendar)
    lease = rules.lease_rule(delivery.mark, arguments, key=key, lives_for=lease_lives_for)
    if key is None and lease is None and not delivery.redelivered and not delivery.may_be_a_copy:
        return None
    return Ask(
        job=delivery.job,
        tries=delivery.tries,
        task=delivery.task,
        boot=boot,
        redelivered=delivery.redelivered,
        released=delivery.may_be_a_copy,
        attempt_limit=rules.attempts,
        key=key,
        lease=lease,
    )

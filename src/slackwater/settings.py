"""Settings: one frozen object, filled from the environment in one place."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, Self

from slackwater.core.tempo import Tempo
from slackwater.errors import ConfigurationError

PREFIX = "SLACKWATER_"
_COUNTS = ("publish_batch", "full_letters_per_cause", "flood_count", "rabbitmq_delivery_limit")
_FLAGS = {"0": False, "no": False, "false": False, "1": True, "yes": True, "true": True}
_TEXTS = ("store_url", "rabbitmq_management_url")
_NOT_OURS = ("SLACKWATER_TEST_",)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How the processes behave; all spans are of the run clock.

    Attributes:
        store_url: The store's address; takes precedence over the one in the code, as Celery's own variables do.
        tempo: How calendar time runs against run time (`SLACKWATER_TEMPO`).
        presence_every: How often a worker refreshes its row; within that time it keeps the message of a job that runs
            under a lease.
        presence_lives_for: How long a row counts; at least twice `presence_every`.
        probe_every: How often the balancer reads the lanes.
        settle_every: How often the balancer looks at open occurrences.
        sweep_every: How often sweepers look for what got stuck.
        frozen_after: A worker that is silent that long beyond its presence is dead, though the broker still sees it.
            On RabbitMQ the workers' heartbeats follow from it, so that the broker finds that itself.
        readings_kept_for: Older readings are deleted.
        rabbitmq_delivery_limit: Deliveries after which RabbitMQ itself takes a message out of a lane's queue: a
            backstop, well above the attempts that the guard allows. Queues that exist keep theirs, and refuse another.
        rabbitmq_consumer_timeout: How long RabbitMQ lets a job run before it takes the message back; as the server's
            `consumer_timeout` is set.
        rabbitmq_management_url: Address of RabbitMQ's management interface, credentials included; None for none, and
            then nobody can tell what is delivered and not acknowledged.
        publish_batch: Jobs of a fan-out that are published at once.
        lease_lives_for: A lease's time-to-live without renewal; at least twice `presence_every`.
        store_patience: How long a job waits in its slot for a store that is away, before its delivery goes back.
        later: How long a job waits in the store that found its key taken and is to come again later.
        pending_for: How long a job that was announced and has not begun keeps its like from being published.
        feed_every: How often a worker looks for jobs in the store whose time has come.
        stuck_after: How long after `start_by` (calendar clock) an occurrence's last endings may still be told.
        watch_bundles: Groups and chords are noted in the store when they are published, one statement each, so that one
            that cannot complete is closed.
        lost_after: How long the lease of a job that is under way must have ended, before the job is started again from
            the store; never before a dead worker's messages had their time to come back.
        keys_kept_for: Ended keys and runs are deleted after that long; a key does not make a later repeat harmless.
        letters_kept_for: Dead letters are deleted after that long.
        flood_count: So many dead letters of one lane and cause within a minute, and nearly all that end: a pause.
        pause_for: How long a flooded lane takes no work.
        canary_every: How often a canary is sent through each lane.
        canary_within: A lane that has not run its canary for that long does not consume, whatever its workers say.
        full_letters_per_cause: Open dead letters of one lane and cause that keep their message; those buried in the
            same moment do not wait for each other, and may pass it by one for each slot.

    Raises:
        ConfigurationError: A value that cannot be.
    """

    store_url: str | None = None
    tempo: Tempo = field(default_factory=Tempo.real)
    presence_every: timedelta = timedelta(seconds=2)
    presence_lives_for: timedelta = timedelta(seconds=5)
    probe_every: timedelta = timedelta(seconds=5)
    settle_every: timedelta = timedelta(seconds=2)
    sweep_every: timedelta = timedelta(seconds=2)
    frozen_after: timedelta = timedelta(seconds=30)
    readings_kept_for: timedelta = timedelta(days=7)
    rabbitmq_delivery_limit: int = 20
    rabbitmq_consumer_timeout: timedelta = timedelta(minutes=30)
    rabbitmq_management_url: str | None = None
    publish_batch: int = 200
    lease_lives_for: timedelta = timedelta(seconds=15)
    store_patience: timedelta = timedelta(seconds=20)
    later: timedelta = timedelta(seconds=30)
    pending_for: timedelta = timedelta(hours=1)
    feed_every: timedelta = timedelta(seconds=1)
    stuck_after: timedelta = timedelta(minutes=15)
    lost_after: timedelta = timedelta(minutes=1)
    watch_bundles: bool = True
    keys_kept_for: timedelta = timedelta(days=7)
    letters_kept_for: timedelta = timedelta(days=30)
    flood_count: int = 50
    pause_for: timedelta = timedelta(minutes=5)
    canary_every: timedelta = timedelta(seconds=15)
    canary_within: timedelta = timedelta(seconds=60)
    full_letters_per_cause: int = 1_000

    def __post_init__(self) -> None:
        for name in ("presence_every", "probe_every", "settle_every", "readings_kept_for", "feed_every", "sweep_every"):
            if getattr(self, name) < timedelta(milliseconds=100):
                raise ConfigurationError(f"setting {name}: must be at least 0.1 s, not {getattr(self, name)}")
        if self.presence_lives_for < 2 * self.presence_every:
            raise ConfigurationError(
                f"setting presence_lives_for ({self.presence_lives_for}): must be at least twice presence_every "
                f"({self.presence_every}), or a busy worker is taken for dead"
            )
        if self.lease_lives_for < 2 * self.presence_every:
            raise ConfigurationError(
                f"setting lease_lives_for ({self.lease_lives_for}): must be at least twice presence_every "
                f"({self.presence_every}), which is how often leases are renewed"
            )
        for name in _COUNTS:
            if getattr(self, name) < 1:
                raise ConfigurationError(f"setting {name}: must be at least 1, not {getattr(self, name)}")

    @property
    def found_within(self) -> timedelta:
        """Return within what time a worker that stands still, and whose connection does not end, is found."""
        return self.presence_lives_for + self.frozen_after

    @property
    def nothing_returns_after(self) -> timedelta:
        """Return how long after a worker's death its messages may still come back by themselves."""
        return max(self.lost_after, self.found_within + 2 * self.sweep_every)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read `SLACKWATER_*`: spans in seconds, the tempo as `str(Tempo)` writes it.

        Raises:
            ConfigurationError: Unknown names (each with the nearest known one), or values that cannot be.
        """
        readers = {PREFIX + one.name.upper(): one.name for one in fields(cls)}
        given = {name: text for name, text in environ.items() if name.startswith(PREFIX)}
        given = {name: text for name, text in given.items() if not name.startswith(_NOT_OURS)}
        if unknown := [_unknown(name, readers) for name in given if name not in readers]:
            raise ConfigurationError(*unknown)
        values: dict[str, Any] = {readers[name]: _read(name, readers[name], text) for name, text in given.items()}
        return cls(**values)


def _unknown(name: str, known: Mapping[str, str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"environment: {name} is no setting; " + (
        f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
    )


def _read(variable: str, name: str, text: str) -> Tempo | timedelta | int | str:
    if name == "watch_bundles":
        return _flag(variable, text)
    if name in _TEXTS:
        return text
    try:
        if name == "tempo":
            return Tempo.parse(text)
        if name in _COUNTS:
            return int(text)
        return timedelta(seconds=float(text))
    except (ValueError, OverflowError) as error:
        raise ConfigurationError(f"environment: {variable}={text!r}: {error}") from error


def _flag(variable: str, text: str) -> bool:
    if text.lower() not in _FLAGS:
        raise ConfigurationError(f"environment: {variable}={text!r}: give 1 or 0")
    return _FLAGS[text.lower()]

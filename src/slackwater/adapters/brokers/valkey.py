"""Reading queues of Valkey or Redis.

Kombu keeps a queue as one list a priority step: the plain name for step 0, else name + `sep` + step. Publishers push on
the left and consumers pop on the right, so the oldest message of each list is its last.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import kombu
import redis

from slackwater.adapters.brokers.connection import BrokerConnection
from slackwater.adapters.brokers.unacked import REGISTRY, keys_of, owner_in
from slackwater.core.job import HEADER, Mark
from slackwater.core.liveness import Owner
from slackwater.core.reading import QueueReading

_PAGE = 500
_EVERYBODYS = "unacked"
"""Kombu's own name for the hash of what is delivered and not acknowledged."""

# Counts a hash's entries by routing key, which for a lane is its queue: the last of three in the JSON of each. Bodies
# stay where they are: to fetch them would cost megabytes a reading where they are long.
_COUNT = """
local counts, found = {}, {}
for _, entry in ipairs(redis.call('HVALS', KEYS[1])) do
    local key = string.match(entry, '"([^"]*)"%]$')
    if key then counts[key] = (counts[key] or 0) + 1 end
end
for key, count in pairs(counts) do
    table.insert(found, key)
    table.insert(found, count)
end
return found
"""


class ValkeyGauge:
    """Reads all queues in three round trips (the `Gauge` port); 0.1 ms a queue, however many messages wait.

    The age is that of the oldest message which carries our mark, over the heads of all priority steps; a queue whose
    heads carry none has an unknown age.
    """

    def __init__(self, connection: BrokerConnection) -> None:
        self._connection = connection

    def read(self, queues: Sequence[str]) -> Mapping[str, QueueReading]:
        """Return what the broker says of each queue; see the port."""
        if not queues:
            return {}
        return self._connection.ask(lambda connection: _Keys(connection).readings(queues))

    def close(self) -> None:
        """Close its connection."""
        self._connection.close()


class ValkeyMessages:
    """Lists messages without touching them (the `Messages` protocol)."""

    def __init__(self, connection: BrokerConnection) -> None:
        self._connection = connection

    def waiting(self, queues: Sequence[str]) -> Mapping[str, str]:
        """Return the queue of every message that waits, by message id; see the protocol."""
        return self._connection.ask(lambda connection: _Keys(connection).waiting(queues))

    def unacknowledged(self) -> frozenset[str] | None:
        """Return ids that were delivered and not acknowledged; None where acknowledgements are switched off."""
        return self._connection.ask(lambda connection: _Keys(connection).unacknowledged())

    def close(self) -> None:
        """Close its connection."""
        self._connection.close()


class _Keys:
    """The keys of kombu's channel, under a client that adds no prefix.

    Kombu's own client adds the global prefix to the commands that kombu sends, and LINDEX, LRANGE and HSCAN are not
    among them: so the prefix is put on here, and kombu's pool is used without its client.
    """

    def __init__(self, connection: kombu.Connection) -> None:
        channel: Any = connection.default_channel
        self._client: Any = redis.Redis(connection_pool=channel.pool)
        self._prefix = str(channel.global_keyprefix)
        self._separator = str(channel.sep)
        self._steps: list[int] = list(channel.priority_steps)
        self._unacked = self._prefix + str(channel.unacked_key) if channel.ack_emulation else None

    def readings(self, queues: Sequence[str]) -> dict[str, QueueReading]:
        pipeline = self._client.pipeline(transaction=False)
        for queue in queues:
            for key in self._lists(queue):
                pipeline.llen(key)
                pipeline.lindex(key, -1)
        answers = pipeline.execute()
        width = 2 * len(self._steps)
        unacked = self._unacked_by_queue()
        return {
            queue: replace(
                _reading(answers[i * width : (i + 1) * width]),
                unacked=None if unacked is None else unacked.get(queue, 0),
            )
            for i, queue in enumerate(queues)
        }

    def waiting(self, queues: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for queue in queues:
            for key in self._lists(queue):
                for envelope in self._pages(key):
                    if (job := _id(_parse(envelope))) is not None:
                        found.setdefault(job, queue)
        return found

    def unacknowledged(self) -> frozenset[str] | None:
        if self._unacked is None:
            return None
        # What is in transit goes on to a hash meanwhile: looked at first, it is seen twice rather than missed.
        ids = {_id(_parse(message)) for key in self._transits() for message in self._client.hvals(key)}
        entries = (entry for key in self._hashes() for entry in self._client.hscan_iter(key, count=_PAGE))
        ids |= {_id(_first(_parse(value))) for _, value in entries}
        return frozenset(job for job in ids if job is not None)

    def _unacked_by_queue(self) -> Counter[str] | None:
        if self._unacked is None:
            return None
        pipeline = self._client.pipeline(transaction=False)
        for key in self._hashes():
            pipeline.eval(_COUNT, 1, key)
        counted = len(pipeline)
        for key in self._transits():
            pipeline.hkeys(key)
        answers = pipeline.execute()
        found: Counter[str] = Counter()
        for said in answers[:counted]:
            for name, count in zip(said[::2], said[1::2], strict=True):
                found[name.decode(errors="replace")] += int(count)
        found.update(self._queue_of(name) for said in answers[counted:] for name in said)
        return found

    def _hashes(self) -> list[str]:
        """Return the hashes of what is delivered: each owner's, and the one of workers that own nothing."""
        owned = {self._prefix + keys_of(owner).messages for owner in self._owners()}
        return sorted({str(self._unacked), self._prefix + _EVERYBODYS, *owned})

    def _transits(self) -> list[str]:
        """Return the hashes of what is on its way into its owner's hands."""
        return [self._prefix + keys_of(owner).transit for owner in self._owners()]

    def _owners(self) -> list[Owner]:
        entries = self._client.smembers(self._prefix + REGISTRY)
        owners = (owner_in(entry.decode(errors="replace")) for entry in entries)
        return [one[1] for one in owners if one is not None]

    def _queue_of(self, name: bytes) -> str:
        """Return the queue that a list is of."""
        return name.decode(errors="replace").removeprefix(self._prefix).rsplit(self._separator, 1)[0]

    def _lists(self, queue: str) -> list[str]:
        name = self._prefix + queue
        return [f"{name}{self._separator}{step}" if step else name for step in self._steps]

    def _pages(self, key: str) -> Iterator[bytes]:
        """Yield a list from the left: what is published meanwhile is seen twice rather than something missed."""
        start = 0
        while page := self._client.lrange(key, start, start + _PAGE - 1):
            yield from page
            start += _PAGE


def _reading(answers: Sequence[Any]) -> QueueReading:
    """Put together the lengths and last messages of one queue's lists, which alternate."""
    stamps = [_published_at(envelope) for envelope in answers[1::2] if envelope is not None]
    return QueueReading(
        ready=sum(answers[::2]),
        oldest_published_at=min((stamp for stamp in stamps if stamp is not None), default=None),
    )


def _published_at(envelope: bytes) -> datetime | None:
    mark = Mark.from_header(_headers(_parse(envelope)).get(HEADER))
    return None if mark is None else mark.published_at


def _id(message: object) -> str | None:
    job = _headers(message).get("id")
    return job if isinstance(job, str) else None


def _headers(message: object) -> Mapping[str, Any]:
    headers = message.get("headers") if isinstance(message, Mapping) else None
    return headers if isinstance(headers, Mapping) else {}


def _first(entry: object) -> object:
    """Return the message of an entry of the unacknowledged: [message, exchange, routing key]."""
    return entry[0] if isinstance(entry, list) and entry else None


def _parse(text: bytes) -> object:
    """Parse JSON; None for what is none, since anyone may have put anything there."""
    try:
        return json.loads(text)
    except ValueError:
        return None

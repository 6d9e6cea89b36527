"""Recovery on Valkey: what a dead worker process had in its hands goes back to its queues."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import kombu
import redis
import structlog

from slackwater.adapters.brokers.connection import BrokerConnection
from slackwater.adapters.brokers.unacked import REGISTRY, UnackedKeys, client_name_of, entry_of, keys_of, owner_in
from slackwater.core.liveness import Owner

log = structlog.get_logger("slackwater.recovery")
_PAGE = 100

# One message goes from its owner's hash to its queue, or nothing happens: whoever else took it out of the hash (another
# recoverer, or an acknowledgement) did so before. KEYS: hash, index, list. ARGV: tag, entry as read, new message.
_RESTORE = """
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('RPUSH', KEYS[3], ARGV[3])
return 1
"""

# What was in transit was never begun, so it goes back as it is. KEYS: transit, list. ARGV: message as read.
_TURN_BACK = """
if redis.call('HGET', KEYS[1], KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('HDEL', KEYS[1], KEYS[2])
redis.call('RPUSH', KEYS[2], ARGV[1])
return 1
"""

# KEYS: hash, transit, index, mutex, registry. ARGV: entry of the registry.
_FORGET = """
if redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then return 0 end
redis.call('DEL', KEYS[3], KEYS[4])
redis.call('SREM', KEYS[5], ARGV[1])
return 1
"""


class ValkeyRecovery:
    """Finds owners and restores their messages (the `Recovery` port); safe from several processes at once."""

    def __init__(self, connection: BrokerConnection, *, realm: str) -> None:
        """Take a connection.

        Args:
            connection: Where the messages are.
            realm: Whose owners it sees; see `entry_of`.
        """
        self._connection = connection
        self._realm = realm

    def enter(self, owner: Owner) -> None:
        """Write an owner into the registry; see the port."""
        self._connection.ask(lambda opened: enter(opened, owner, realm=self._realm))

    def owners(self) -> Mapping[Owner, int]:
        """Return the owners of this realm, with how many messages each has; see the port."""
        return self._connection.ask(lambda opened: _Broker(opened).owners(self._realm))

    def connections(self, owner: Owner) -> int | None:
        """Return how many connections of an owner the broker sees; see the port."""
        return self._connection.ask(lambda opened: _Broker(opened).connections(owner))

    def restore(self, owner: Owner) -> int:
        """Put an owner's messages back into their queues; see the port."""
        return self._connection.ask(lambda opened: _Broker(opened).restore(owner))

    def delivered(self, owner: Owner) -> Sequence[str]:
        """Return the tags of all that is delivered to an owner; see the port `Hands`."""
        return self._connection.ask(lambda opened: _Broker(opened).delivered(owner))

    def jobs_of(self, owner: Owner, tags: Sequence[str]) -> Mapping[str, tuple[str, int]]:
        """Return job and try of some messages; see the port `Hands`."""
        return self._connection.ask(lambda opened: _Broker(opened).jobs_of(owner, tags)) if tags else {}

    def restore_these(self, owner: Owner, tags: Sequence[str]) -> int:
        """Put some messages back into their queues; see the port `Hands`."""
        return self._connection.ask(lambda opened: _Broker(opened).restore_these(owner, tags)) if tags else 0

    def forget(self, owner: Owner) -> bool:
        """Strike an owner off the registry; see the port."""
        return self._connection.ask(lambda opened: _Broker(opened).forget(owner, realm=self._realm))

    def close(self) -> None:
        """Close its connection."""
        self._connection.close()


def enter(connection: Any, owner: Owner, *, realm: str) -> None:
    """Write an owner into the registry over a connection of kombu."""
    _Broker(connection).enter(owner, realm=realm)


class _Broker:
    """The keys under a client that adds no prefix; see `valkey._Keys`."""

    def __init__(self, connection: kombu.Connection) -> None:
        channel: Any = connection.default_channel
        self._channel = channel
        self._client: Any = redis.Redis(connection_pool=channel.pool)
        self._prefix = str(channel.global_keyprefix)

    def enter(self, owner: Owner, *, realm: str) -> None:
        self._client.sadd(self._prefix + REGISTRY, entry_of(owner, realm=realm))

    def owners(self, realm: str) -> dict[Owner, int]:
        entries = (owner_in(_text(entry)) for entry in self._client.smembers(self._prefix + REGISTRY))
        found = sorted((one[1] for one in entries if one is not None and one[0] == realm), key=lambda one: one.worker)
        pipeline = self._client.pipeline(transaction=False)
        for owner in found:
            pipeline.hlen(self._keys(owner).messages)
            pipeline.hlen(self._keys(owner).transit)
        counts = pipeline.execute() if found else []
        return {owner: counts[2 * number] + counts[2 * number + 1] for number, owner in enumerate(found)}

    def connections(self, owner: Owner) -> int | None:
        wanted = client_name_of(owner)
        try:
            clients: Sequence[Mapping[str, str]] = self._client.client_list()
        except redis.ResponseError:  # not allowed to ask, or a proxy that does not know the command
            return None
        return [client.get("name") for client in clients].count(wanted)

    def restore(self, owner: Owner) -> int:
        keys = self._keys(owner)
        # Newest first: each is pushed to the end that is popped, so the oldest is popped first.
        tags = self._client.zrevrange(keys.index, 0, -1)
        known = set(tags)
        tags += [tag for tag in self._client.hkeys(keys.messages) if tag not in known]
        return self._turn_back(keys) + sum(
            self._restore_page(keys, tags[start : start + _PAGE]) for start in range(0, len(tags), _PAGE)
        )

    def _turn_back(self, keys: UnackedKeys) -> int:
        pipeline = self._client.pipeline(transaction=False)
        for where, message in self._client.hgetall(keys.transit).items():
            pipeline.eval(_TURN_BACK, 2, keys.transit, where, message)
        return sum(pipeline.execute())

    def delivered(self, owner: Owner) -> Sequence[str]:
        return [_text(tag) for tag in self._client.hkeys(self._keys(owner).messages)]

    def jobs_of(self, owner: Owner, tags: Sequence[str]) -> dict[str, tuple[str, int]]:
        entries = self._client.hmget(self._keys(owner).messages, tags)
        return {
            tag: job
            for tag, entry in zip(tags, entries, strict=True)
            if entry is not None and (job := _job_in(entry)) is not None
        }

    def restore_these(self, owner: Owner, tags: Sequence[str]) -> int:
        return self._restore_page(self._keys(owner), tags)

    def _restore_page(self, keys: UnackedKeys, tags: Sequence[bytes | str]) -> int:
        entries = self._client.hmget(keys.messages, tags)
        pipeline = self._client.pipeline(transaction=False)
        for tag, entry in zip(tags, entries, strict=True):
            for where, message in self._put_back(entry):
                pipeline.eval(_RESTORE, 3, keys.messages, keys.index, where, tag, entry, message)
        return sum(pipeline.execute())

    def _put_back(self, entry: bytes | None) -> Iterator[tuple[str, str]]:
        """Yield the list that an entry's message goes to, and the message, as kombu itself restores it."""
        if entry is None:
            return
        try:
            message, exchange, routing_key = json.loads(entry)
            message["headers"]["redelivered"] = True
            message["properties"]["delivery_info"]["redelivered"] = True
            priority = self._channel._get_message_priority(message, reverse=False)
        except (ValueError, TypeError, KeyError) as error:
            log.warning("message not restored: it is none of kombu's", error=str(error))
            return
        queue = self._queue_of(exchange, routing_key)
        yield self._prefix + str(self._channel._q_for_pri(queue, priority)), json.dumps(message)

    def _queue_of(self, exchange: str, routing_key: str) -> str:
        # Bound queues are kombu's to know. Where nobody knows any more, the routing key is a lane's queue: a message in
        # a queue of that name can be found, while one that goes nowhere cannot.
        found = set(self._channel._lookup(exchange, routing_key)) if exchange else set()
        return routing_key if not found or routing_key in found else str(min(found))

    def forget(self, owner: Owner, *, realm: str) -> bool:
        keys = self._keys(owner)
        registry, entry = self._prefix + REGISTRY, entry_of(owner, realm=realm)
        return bool(self._client.eval(_FORGET, 5, keys.messages, keys.transit, keys.index, keys.mutex, registry, entry))

    def _keys(self, owner: Owner) -> UnackedKeys:
        keys = keys_of(owner)
        return UnackedKeys(
            messages=self._prefix + keys.messages,
            transit=self._prefix + keys.transit,
            index=self._prefix + keys.index,
            mutex=self._prefix + keys.mutex,
        )


def _job_in(entry: bytes) -> tuple[str, int] | None:
    try:
        message, *_ = json.loads(entry)
        return str(message["headers"]["id"]), int(message["headers"].get("retries") or 0)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _text(said: bytes | str) -> str:
    return said.decode(errors="replace") if isinstance(said, bytes) else said

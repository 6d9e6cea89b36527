"""How a worker takes a message from Valkey: it is in the worker's hands the moment it has left its list.

Kombu pops a message (BRPOP), and writes it into the hash of what is delivered once it has read the answer. In between
it is nowhere but in a socket: a worker that is stopped just then and killed later, or whose connection breaks, loses
it. Here one script moves it from its list to its owner's transit, from where it goes on to the hash.

Nothing blocks in a script. So a worker that finds nothing waits with a BLMOVE that moves the next message from the end
of its list to the same end (Redis 6.2 and later), and looks again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from queue import Empty
from time import monotonic, time
from typing import Any

import redis
from kombu.transport import virtual
from kombu.transport.redis import Channel, QoS
from kombu.utils.encoding import bytes_to_str
from kombu.utils.json import dumps, loads

WAIT_S, WAIT_AMONG_QUEUES_S = 0.25, 0.1
"""How long a worker waits for a message of ordinary priority before it looks at all lists again; and how long at each
of several queues in turn."""

# What was taken before comes first: its answer was lost with a connection. KEYS: transit, then the lists in the order
# in which they are looked at.
_TAKE = """
local left = redis.call('HGETALL', KEYS[1])
if left[1] then return {left[1], left[2]} end
for number = 2, #KEYS do
    local message = redis.call('RPOP', KEYS[number])
    if message then
        redis.call('HSET', KEYS[1], KEYS[number], message)
        return {KEYS[number], message}
    end
end
return false
"""

# Nothing happens if it is not in transit any more: whoever took this worker for dead has put it back. KEYS: transit,
# hash, index. ARGV: tag, entry, now.
_ARRIVE = """
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[3], ARGV[3], ARGV[1])
return 1
"""


_KombusChannel: Any = Channel


class Gone(Exception):
    """A message that was in transit has been put back into its queue meanwhile."""


class OwnersQoS(QoS):
    """What kombu keeps of a channel's deliveries, for a worker that owns what it takes: they outlive the channel.

    Kombu's own puts all back when a connection breaks, also what still runs: two bodies of one job. And it cannot
    acknowledge over a channel that is closed, which ends the worker. What really is left behind is found by `hands`,
    and at the worker's end by `worker_life`.
    """

    restore_at_shutdown = False
    channel: Any
    latest: Callable[[], Any]

    def append(self, message: Any, delivery_tag: str) -> None:
        """Write down a message that is delivered; one in transit arrives in the same step.

        Raises:
            Gone: It is not in transit any more.
        """
        if not self.channel.takes:
            super().append(message, delivery_tag)
            return
        where = message.delivery_info
        entry = dumps([message._raw, where["exchange"], where["routing_key"]])
        names = (self.channel.transit, self.unacked_key, self.unacked_index_key)
        keys = [f"{self.channel.global_keyprefix}{name}" for name in names]
        if not self.channel.bare.eval(_ARRIVE, len(keys), *keys, delivery_tag, entry, time()):
            raise Gone
        virtual.QoS.append(self, message, delivery_tag)

    def ack(self, delivery_tag: str) -> None:
        """Acknowledge, over the latest channel if this one is closed."""
        if self.channel.closed:
            self._open()._remove_from_indices(delivery_tag).execute()
        else:
            super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:  # kombu's signature
        """Reject, over the latest channel if this one is closed."""
        if not self.channel.closed:
            super().reject(delivery_tag, requeue=requeue)
        elif requeue:
            self._open().restore_by_tag(delivery_tag, leftmost=True)
        else:
            self._open()._remove_from_indices(delivery_tag).execute()

    def _open(self) -> Any:
        channel = self.latest()
        if channel is None or channel.closed:
            raise redis.ConnectionError("the connection is lost and there is no other yet")
        return channel.qos


class OwnersChannel(_KombusChannel):  # type: ignore[misc]  # the stubs leave most of it out
    """A channel of kombu's Redis transport that takes messages into transit.

    Attributes:
        transit: Name of the hash of what is in transit, without kombu's prefix; it holds one message at most.
        takes: A message is on its way from there.
    """

    transit: str
    takes = False
    _waits = False
    _turn = 0

    def _brpop_start(self, timeout: float | None = None) -> None:  # noqa: ARG002  # kombu's signature
        queues = self._queue_cycle.consume(len(self.active_queues))
        if not queues:
            return
        self._in_poll = self.client.connection
        self._brpop_sent_at = monotonic()
        self.client.connection.send_command(*self._next_command(queues))

    @cached_property
    def bare(self) -> Any:
        """Return a client that adds no prefix."""
        return redis.Redis(connection_pool=self.pool)

    def _next_command(self, queues: list[str]) -> list[Any]:
        prefix = self.global_keyprefix
        if not self._waits:
            lists = [f"{prefix}{self._q_for_pri(queue, step)}" for step in self.priority_steps for queue in queues]
            return ["EVAL", _TAKE, 1 + len(lists), f"{prefix}{self.transit}", *lists]
        self._turn += 1
        one = f"{prefix}{self._q_for_pri(queues[self._turn % len(queues)], 0)}"
        return ["BLMOVE", one, one, "RIGHT", "RIGHT", WAIT_S if len(queues) == 1 else WAIT_AMONG_QUEUES_S]

    def _brpop_read(self, **options: Any) -> bool:
        waited, self._waits = self._waits, False
        try:
            answer = self._answer("BLMOVE" if waited else "EVAL", **options)
            if waited or answer is None or self._closing:
                # What was taken by a channel that closes stays in transit: the next channel's look finds it first.
                self._waits = not waited
                raise Empty
            name, message = answer
            self._hand_on(bytes_to_str(name), bytes_to_str(message))
            return True
        finally:
            self._in_poll = None
            self._flush_brpop_reauth()

    def _answer(self, command: str, **options: Any) -> Any:
        try:
            return self.client.parse_response(self.client.connection, command, **options)
        except self.connection_errors:
            self.client.connection.disconnect()
            raise

    def _hand_on(self, name: str, message: str) -> None:
        queue = name.removeprefix(self.global_keyprefix).rsplit(self.sep, 1)[0]
        self._queue_cycle.rotate(queue)
        self.takes = True
        try:
            self.connection._deliver(loads(message), queue)
        except Gone:
            raise Empty from None
        except redis.RedisError:
            raise
        except Exception:
            # None of kombu's, or nobody can read it: it would come again for ever.
            self._drop()
            raise
        finally:
            self.takes = False

    def _drop(self) -> None:
        self.bare.delete(f"{self.global_keyprefix}{self.transit}")


def outlive(channel: Any, *, transit: str, latest: Callable[[], Any]) -> None:
    """Have a channel take messages into transit, and its deliveries outlive it.

    Args:
        channel: Of kombu's Redis transport; it consumes nothing yet.
        transit: Name of the hash of what its owner has in transit, without kombu's prefix.
        latest: Returns the channel that the worker consumes over now; None for none.
    """
    # Swapped, as the worker may have set its prefetch already.
    channel.qos.__class__ = OwnersQoS
    channel.qos.latest = latest
    channel.__class__ = OwnersChannel
    channel.transit = transit
    channel.handlers["BRPOP"] = channel._brpop_read

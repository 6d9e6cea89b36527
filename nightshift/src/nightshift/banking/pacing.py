"""Pacing of calls to a peer, across all worker processes: one token grid, kept in Valkey.

Whoever wants to call reserves the next free slot of the grid and sleeps exactly until it. Slots are handed
out one by one, so nobody polls and no herd wakes: a caller that has to wait long knows so at once, and waits.
There is no limit on how far ahead a slot may lie; what may not wait does not belong behind a pacer.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import redis

from nightshift.peers import PacerUnavailable

_MICROSECONDS = 1_000_000

# The theoretical arrival time (microseconds of the server's clock) is the whole state. It expires when it is
# past, where it means nothing any more. %.0f: Lua would otherwise round the number to 14 digits.
_RESERVE = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, tolerance = tonumber(ARGV[1]), tonumber(ARGV[2])
local arrival = math.max(now, tonumber(redis.call('GET', KEYS[1]) or 0))
local slot = math.max(now, arrival - tolerance)
redis.call('SET', KEYS[1], string.format('%.0f', arrival + interval),
           'PX', math.ceil((arrival + interval - now) / 1000) + 1000)
return {string.format('%.0f', slot), string.format('%.0f', now)}
"""


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """A slot on the grid; it is the caller's alone.

    Attributes:
        opens_at: When the call may be made, by the server's clock (aware, UTC).
        wait: How long that is from now; zero for an open slot.
    """

    opens_at: dt.datetime
    wait: dt.timedelta


class CallPacer:
    """Call pacer = generic cell rate algorithm by reservation, shared through Valkey.

    Over any second no more than `ratio * calls_per_second + burst` slots open to all callers with the same
    key. Thread-safe. A reserved slot is spent, whether a call is made in it or not.
    """

    def __init__(
        self,
        server: redis.Redis,
        key: str,
        *,
        calls_per_second: float,
        burst: int = 1,
        ratio: float = 0.97,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Set up a pacer; nothing is sent yet.

        Args:
            server: Client of the Valkey that all callers share; its pool must do for this process's threads.
            key: Name of the grid, one a peer.
            calls_per_second: The peer's limit, calls a second.
            burst: Slots that may open at one instant after a pause, at least 1. Above 1 it eats into the
                peer's own burst, which is what absorbs late threads.
            ratio: Share of the limit to use, in (0, 1]. Somewhat below 1, so that a caller that woke late
                does not leave the peer's bucket empty for good.
            sleep: Takes seconds.

        Raises:
            ValueError: A number is outside its range.
        """
        if not (calls_per_second > 0 and burst >= 1 and 0 < ratio <= 1):
            raise ValueError(
                f"pacer {key}: {calls_per_second} calls a second must be above 0, burst {burst} at least 1,"
                f" ratio {ratio} in (0, 1]"
            )
        self._key = key
        self._interval = _MICROSECONDS / (calls_per_second * ratio)
        self._tolerance = (burst - 1) * self._interval
        self._script = server.register_script(_RESERVE)
        self._sleep = sleep

    def reserve(self) -> Reservation:
        """Take the next slot. The caller must not call before it opens.

        Raises:
            PacerUnavailable: Valkey did not answer. A slot may have been spent.
        """
        try:
            reply = self._script(keys=[self._key], args=[self._interval, self._tolerance])
        except redis.RedisError as error:
            raise PacerUnavailable(
                f"cannot reserve a call ({error})", peer=f"pacer {self._key}", remedy="check that Valkey runs"
            ) from error
        slot, now = (int(number) for number in cast("tuple[bytes, bytes]", reply))
        return Reservation(
            opens_at=dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=slot),
            wait=dt.timedelta(microseconds=slot - now),
        )

    def wait(self) -> None:
        """Take the next slot and sleep until it opens.

        Raises:
            PacerUnavailable: Valkey did not answer.
        """
        reservation = self.reserve()
        if reservation.wait:
            self._sleep(reservation.wait.total_seconds())

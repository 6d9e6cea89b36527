"""The desk behind which every call is dealt with: let in or not, made to wait, answered, and booked."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import math
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from typing import NoReturn

from fastapi import Request

from nightshift.tokens import Registration
from nightshift.world.bookkeeper import Bookkeeper, stamp
from nightshift.world.consents import Consents
from nightshift.world.kinds import AGGREGATOR_KINDS, Fault, Outcome, PathKind
from nightshift.world.limiter import admit
from nightshift.world.script import Plan, WorldRules, plan_call

_LOOK_S = 0.1
"""How often it is looked whether a caller that is kept waiting has gone."""


class CutOffError(Exception):
    """The call ends without a whole answer of its own.

    Attributes:
        outcome: What its caller gets.
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.value)
        self.outcome = outcome


class SteadyClock:
    """UTC that never jumps: read once, then carried on by the monotonic clock."""

    def __init__(self) -> None:
        self._origin = dt.datetime.now(dt.UTC)
        self._origin_s = time.monotonic()

    def now(self) -> dt.datetime:
        """Return the aware instant, UTC."""
        return self.at(self.now_s())

    def now_s(self) -> float:
        """Return seconds since this clock was made."""
        return time.monotonic() - self._origin_s

    def at(self, moment_s: float) -> dt.datetime:
        """Return the instant of a reading of `now_s`."""
        return self._origin + dt.timedelta(seconds=moment_s)


class OpenCall:
    """A call on its way through the desk, and the row that tells of it.

    Attributes:
        call_id: Its number in the books.
        kind: What it asks for.
        subject: Account id, or idempotency key; empty if it named none.
        job_id: The caller's `X-Job-Id`, or None.
        ask: How often this endpoint was granted for this subject before; set when it is let in.
        plan: What was drawn for it; set when it is let in.
        granted_s: When it was let in, on the desk's clock.
        replayed: Set by a submission that met an older filing.
        fault: What is wrong with it, or None.
        is_cut_off: It ends without a whole answer of its own.
    """

    def __init__(self, call_id: int, kind: PathKind, *, subject: str, job_id: str | None) -> None:
        self.call_id = call_id
        self.kind = kind
        self.subject = subject
        self.job_id = job_id
        self.ask = 0
        self.plan = Plan(latency_s=0.0, fault=None, status=200, effect_after_s=0.0)
        self.granted_s = 0.0
        self.replayed = False
        self.fault: Fault | None = None
        self.is_cut_off = False


class Desk:
    """State of a running world: rules, books, the rate limit's bucket, and how often each was asked."""

    def __init__(self, rules: WorldRules, books: Bookkeeper, *, registration: Registration) -> None:
        """Take over where the books end.

        Args:
            rules: What decides the answers.
            books: Writer of the books, open.
            registration: Of the one application that may call.
        """
        self.rules = rules
        self.books = books
        self.registration = registration
        self.clock = SteadyClock()
        self.transport_of: Callable[[Request], asyncio.Transport | None] = lambda _: None
        self.filings = dict(books.memory.filings)
        self.consents = Consents(rules.seed, books.memory.consents)
        self._keys_until_s: dict[str, float] = {}
        self._asks = Counter(books.memory.asks)
        self._next_call_id = books.memory.next_call_id
        self._arrival_s = 0.0
        self._closing = asyncio.Event()

    def open_call(self, kind: PathKind, subject: str, *, method: str, query: str, job_id: str | None) -> OpenCall:
        """Book the arrival of a call."""
        call = OpenCall(self._next_call_id, kind, subject=subject, job_id=job_id)
        self._next_call_id += 1
        facts = {
            "method": method,
            "kind": kind.value,
            "subject": subject or None,
            "query": query,
            "job_id": job_id,
        }
        self.books.open_call(call.call_id, received_at=self.clock.now(), facts=facts)
        return call

    async def close_call(
        self, call: OpenCall, status: int, *, retry_after_s: int | None = None, outcome: Outcome = Outcome.ANSWERED
    ) -> None:
        """Book the answer of a call; returns when committed, so that no caller knows more than the books."""
        facts: dict[str, object] = {
            "answered_at": stamp(self.clock.now()),
            "status": status,
            "fault": call.fault,
            "retry_after_s": retry_after_s,
            "replayed": int(call.replayed),
            "outcome": outcome,
        }
        await asyncio.wrap_future(self.books.amend_call(call.call_id, facts))

    def end_call(self, call: OpenCall, outcome: Outcome) -> Future[None]:
        """Book that a call ends without an answer; the result is there when that is committed."""
        call.is_cut_off = True
        facts = {"fault": call.fault, "outcome": outcome, "replayed": int(call.replayed)}
        return self.books.amend_call(call.call_id, facts)

    def let_in(self, call: OpenCall) -> int | None:
        """Let a call in and draw what happens to it; the aggregator's calls have to pass the rate limit.

        Returns:
            None if it was let in, or the whole seconds after which it may ask again.
        """
        now_s = self.clock.now_s()
        if call.kind in AGGREGATOR_KINDS:
            admission = admit(self.rules.rate_limit, self._arrival_s, now_s=now_s)
            self._arrival_s = admission.arrival_s
            if not admission.granted:
                call.fault = Fault.RATE_LIMIT
                return max(1, math.ceil(admission.retry_after_s))
        call.ask = self._asks[call.kind, call.subject]
        self._asks[call.kind, call.subject] += 1
        call.plan = plan_call(self.rules, call.kind, subject=call.subject, ask=call.ask, at_s=now_s)
        call.fault = call.plan.fault
        call.granted_s = now_s
        facts = {
            "granted_at": stamp(self.clock.at(now_s)),
            "ask": call.ask,
            "latency_s": call.plan.latency_s,
            "fault": call.fault,
        }
        self.books.amend_call(call.call_id, facts)
        return None

    async def wait(self, call: OpenCall, after_s: float) -> None:
        """Wait until some seconds after a call was let in.

        Raises:
            CutOffError: The world closes before that.
        """
        remaining_s = call.granted_s + after_s - self.clock.now_s()
        try:
            await asyncio.wait_for(self._closing.wait(), timeout=max(0.0, remaining_s))
        except TimeoutError:
            return
        raise CutOffError(Outcome.CLOSING)

    async def wait_for_answer(self, call: OpenCall, request: Request) -> None:
        """Wait until the drawn latency of a call is over.

        Raises:
            CutOffError: The world closes before that, or there is no one left to be answered.
        """
        await self.wait(call, call.plan.latency_s)
        if await request.is_disconnected():
            raise CutOffError(Outcome.CALLER_LEFT)

    def knows_key(self, key: str) -> bool:
        """Tell whether a continuation key of ours is still known."""
        lifetime_s = self.rules.key_lifetime_s
        return lifetime_s is None or self._keys_until_s.get(key, 0.0) > self.clock.now_s()

    def remember_key(self, key: str) -> None:
        """Know a continuation key from now on, as long as the rules say."""
        if self.rules.key_lifetime_s is not None:
            self._keys_until_s[key] = self.clock.now_s() + self.rules.key_lifetime_s

    async def wait_until_left(self, request: Request) -> NoReturn:
        """Keep a caller waiting without an answer.

        Raises:
            CutOffError: It has gone, or the world closes.
        """
        while not await request.is_disconnected():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), timeout=_LOOK_S)
                raise CutOffError(Outcome.CLOSING)
        raise CutOffError(Outcome.CALLER_LEFT)

    def close(self) -> None:
        """Cut off all calls that wait, and all that will."""
        self._closing.set()

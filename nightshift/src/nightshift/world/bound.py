"""How fast a fan-out could have been: a lower bound, drawn from the world's books."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from itertools import accumulate, groupby, pairwise

from nightshift.world.books import Call
from nightshift.world.kinds import AGGREGATOR_KINDS, Fault
from nightshift.world.limiter import RateLimit


def fan_out_bound_s(calls: Sequence[Call], *, calls_per_second: float, burst: int) -> float:
    """Bound from below how long a fan-out takes under the aggregator's rate limit and latencies.

    A relaxed single-machine schedule with delivery times, solved by Jackson's rule. The needed calls (see
    `needed_calls`) of one job run one after another; as many jobs as you like run at once; the machine is
    the rate limit, whose k-th token is not there before `(k - burst) / calls_per_second`. From the moment it
    is let in, a call has a tail: its own drawn latency and that of all later calls of its job, and the
    `Retry-After` of a scripted 429 where the job waited for it. Then no schedule can be shorter than

    - the longest job: the tail of its first call, and
    - for each k: the k-th token and after it the k-th longest tail, since of the k calls with the longest
      tails one gets the k-th token or a later one.

    Relaxed are: transport and the caller's own work take no time, all jobs may begin at once, and unused
    tokens keep for ever. What an ideal caller needs is this or a little more, never less.

    Args:
        calls: The calls of one fan-out, in any order; others than the aggregator's are ignored.
        calls_per_second: The rate limit's sustained rate.
        burst: Its burst.

    Returns:
        Seconds from the arrival of the first call to the answer of the last one; 0 without needed calls.

    Raises:
        ValueError: The rate is not positive, or the burst less than 1.

    Source: Jackson 1955, "Scheduling a production line to minimize maximum tardiness".
    """
    limit = RateLimit(calls_per_second=calls_per_second, burst=burst)
    chains = groupby(needed_calls(calls), key=_job)
    tails = sorted((tail for _, chain in chains for tail in _tails(list(chain))), reverse=True)
    tokens = (max(0, number - limit.burst) * limit.interval_s for number in range(1, len(tails) + 1))
    return max((token + tail for token, tail in zip(tokens, tails, strict=True)), default=0.0)


def in_order_bound_s(calls: Sequence[Call], *, calls_per_second: float, burst: int) -> float:
    """Bound from below how long a fan-out takes if its calls are let in in the order in which they were.

    `fan_out_bound_s` may put the slowest call first, as nobody can who does not know the latencies
    beforehand: one answer of 27 s near the end of a minute of calls then counts as waste. This one keeps the
    order, and takes out all that was not forced: each needed call is let in as soon as the rate limit, the
    call let in before it, and the call before it in its own job allow. Each of these moments is the earliest
    possible, so no schedule with this order is shorter. What is left above it is the caller's doing: too few
    calls at once, a pace below the limit, refused calls, its own work.

    Args:
        calls: The calls of one fan-out, in any order; others than the aggregator's are ignored.
        calls_per_second: The rate limit's sustained rate.
        burst: Its burst.

    Returns:
        Seconds from the arrival of the first call to the answer of the last one; at least `fan_out_bound_s`,
        and 0 without needed calls.

    Raises:
        ValueError: The rate is not positive, or the burst less than 1.
    """
    limit = RateLimit(calls_per_second=calls_per_second, burst=burst)
    needed = needed_calls(calls)
    waits = _forced_waits(needed)
    ready_s: dict[tuple[str, int], float] = {}
    slot_s = arrival_s = end_s = 0.0
    for call in sorted(needed, key=lambda call: (call.granted_at, call.call_id)):
        token_s = arrival_s - (limit.burst - 1) * limit.interval_s
        slot_s = max(slot_s, token_s, ready_s.get(_job(call), 0.0))
        arrival_s = max(slot_s, arrival_s) + limit.interval_s
        answer_s = slot_s + (call.latency_s or 0.0)
        ready_s[_job(call)] = answer_s + waits[call.call_id]
        end_s = max(end_s, answer_s)
    return end_s


def observed_span_s(calls: Sequence[Call]) -> float:
    """Measure what the bound is held against: from the first arrival to the last answer, seconds.

    Takes the needed calls alone, as the bound does; 0 without any.
    """
    needed = needed_calls(calls)
    if not needed:
        return 0.0
    answers = [call.answered_at for call in needed if call.answered_at is not None]
    return (max(answers) - min(call.received_at for call in needed)).total_seconds()


def needed_calls(calls: Sequence[Call]) -> tuple[Call, ...]:
    """Pick the calls without which the work could not have been done.

    Needed is a granted and answered call to the aggregator, up to the first success of its job for the same
    question (endpoint, account, query): its failures were forced by the script. Not needed are calls that
    the rate limit refused, calls that were cut off or never answered, repeats after a success, and calls that
    came while another one of the same job was under way (so what is left of a job is really a sequence). A call
    without a job is a job of its own.

    Args:
        calls: Calls in any order.

    Returns:
        The needed ones, sorted by job, then by arrival.
    """
    granted = [call for call in calls if call.kind in AGGREGATOR_KINDS and call.granted_at and call.answered_at]
    granted.sort(key=lambda call: (_job(call), call.received_at, call.call_id))
    return tuple(call for _, chain in groupby(granted, key=_job) for call in _needed_of_job(list(chain)))


def _needed_of_job(chain: Sequence[Call]) -> list[Call]:
    needed: list[Call] = []
    succeeded: set[tuple[str, str | None, str]] = set()
    free_from = dt.datetime.min.replace(tzinfo=dt.UTC)
    for call in chain:
        question = (call.kind.value, call.subject, call.query)
        if question in succeeded or call.received_at < free_from or call.answered_at is None:
            continue
        needed.append(call)
        free_from = call.answered_at
        if call.succeeded:
            succeeded.add(question)
    return needed


def _tails(chain: Sequence[Call]) -> list[float]:
    """Sum up latencies from the end of a job's chain; as many tails as calls, the last call's first."""
    waits = _forced_waits(chain)
    times = ((call.latency_s or 0.0) + waits[call.call_id] for call in reversed(chain))
    return list(accumulate(times))


def _forced_waits(needed: Sequence[Call]) -> dict[int, float]:
    """Tell by call number how long a scripted 429 kept its job from the next call; takes calls by job."""
    waits = dict.fromkeys((call.call_id for call in needed), 0.0)
    for call, later in pairwise(needed):
        is_forced = call.fault is Fault.SCRIPTED_429 and _job(call) == _job(later)
        if is_forced and call.answered_at is not None:
            waited_s = (later.received_at - call.answered_at).total_seconds()
            waits[call.call_id] = min(call.retry_after_s or 0.0, waited_s)
    return waits


def _job(call: Call) -> tuple[str, int]:
    return ("", call.call_id) if call.job_id is None else (call.job_id, 0)

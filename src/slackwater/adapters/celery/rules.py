"""Rules of delivery, from a task's options: `key`, `fresh_for`, `lease`, `attempts`, `backoff`, `retry_on`.

And what a delivery is to them, from what Celery hands over of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from slackwater.adapters.celery.publishing import mark_in
from slackwater.core.admission import WhenTaken
from slackwater.core.delivery import ATTEMPTS, Delivery, DeliveryRules
from slackwater.core.lane import Lane
from slackwater.core.retry import Backoff, RetryPolicy
from slackwater.core.template import NameTemplate
from slackwater.errors import ConfigurationError

_CACHED = "slackwater_rules_"
_SIGNATURE = "slackwater_signature_"
KEY_POLICIES = (WhenTaken.SKIP, WhenTaken.WAIT, WhenTaken.LATER)


def rules_of(task: Any, lanes: Mapping[str, Lane]) -> DeliveryRules:
    """Return a task's rules; what it does not say comes from its lane.

    Raises:
        ConfigurationError: All that is wrong with them, one line each.
    """
    cached: DeliveryRules | None = task.__dict__.get(_CACHED)
    if cached is None:
        cached = _read(task, lanes)
        task.__dict__[_CACHED] = cached
    return cached


def delivery_of(job: str, task: Any, request: Mapping[str, Any]) -> Delivery:
    """Return a delivery, by the request that a worker hands to its tracer."""
    # Not through Celery's Context, which costs as much as all the rest of a plain job's guard.
    return Delivery(
        job=job,
        task=str(task.name),
        tries=int(request.get("retries") or 0),
        mark=mark_in(request),
        redelivered=bool((request.get("delivery_info") or {}).get("redelivered")),
    )


def arguments_of(task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a call's arguments by the names of the task's parameters, defaults included.

    Raises:
        TypeError: The task cannot be called so.
    """
    signature: inspect.Signature | None = task.__dict__.get(_SIGNATURE)
    if signature is None:
        # Read once: for each job anew it costs more than the name that it is for.
        signature = task.__dict__[_SIGNATURE] = inspect.signature(task.run)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.arguments


def _read(task: Any, lanes: Mapping[str, Lane]) -> DeliveryRules:
    found: list[str] = []
    lane = lanes.get(str(getattr(task, "lane", None)))
    attempts = _option(task, "attempts", int, found)
    rules = DeliveryRules(
        key=_template(task, "key", found),
        fresh_for=_option(task, "fresh_for", timedelta, found),
        key_taken=_policy(task, "key_taken", WhenTaken.SKIP, KEY_POLICIES, found=found),
        lease=_template(task, "lease", found),
        lease_taken=_policy(task, "lease_taken", WhenTaken.WAIT, tuple(WhenTaken), found=found),
        attempts=ATTEMPTS if attempts is None else attempts,
        retry=_retry(task, lane, found),
    )
    if rules.attempts < 1:
        found.append(f"task {task.name}: attempts must be at least 1, not {rules.attempts}")
    if rules.fresh_for is not None and rules.key is None:
        found.append(f"task {task.name}: fresh_for= says how long a key's success counts; give key= too")
    if lane is None and (rules.key is not None or rules.lease is not None):
        found.append(f"task {task.name}: key= and lease= need a lane, whose workers release what waits; give lane= too")
    if not getattr(task, "acks_late", True) and (rules.key is not None or rules.lease is not None):
        found.append(
            f"task {task.name}: key= and lease= need acks_late; a job that cannot ask must go back to its queue"
        )
    if missing := sorted(rules.parameters - _parameters(task)):
        found.append(f"task {task.name}: key= or lease= needs {', '.join(missing)}, which is no parameter of it")
    if found:
        raise ConfigurationError(*found)
    return rules


def _parameters(task: Any) -> frozenset[str]:
    return frozenset(inspect.signature(task.run).parameters)


def _template(task: Any, option: str, found: list[str]) -> NameTemplate | None:
    text = getattr(task, option, None)
    if text is None:
        return None
    try:
        return NameTemplate(str(text))
    except ValueError as error:
        found.append(f"task {task.name}: {option}=: {error}")
        return None


def _option(task: Any, option: str, kind: type[Any], found: list[str]) -> Any:
    value = getattr(task, option, None)
    if value is not None and not isinstance(value, kind):
        found.append(f"task {task.name}: {option}= is a {kind.__name__}, not {value!r}")
        return None
    return value


def _policy(task: Any, option: str, default: WhenTaken, allowed: Sequence[WhenTaken], *, found: list[str]) -> WhenTaken:
    given = getattr(task, option, None)
    if given is None:
        return default
    if given in list(allowed):
        return WhenTaken(given)
    found.append(f"task {task.name}: {option}={given!r} is not one of {', '.join(allowed)}")
    return default


def _retry(task: Any, lane: Lane | None, found: list[str]) -> RetryPolicy | None:
    backoff = _option(task, "backoff", Backoff, found) or (None if lane is None else lane.backoff)
    if backoff is None:
        return None
    if getattr(task, "autoretry_for", None) and getattr(task, "backoff", None):
        found.append(f"task {task.name}: autoretry_for= and backoff= both retry; keep one of them")
    retry_on = getattr(task, "retry_on", None) or (lane.retry_on if lane is not None else None) or (Exception,)
    kinds = tuple(retry_on) if isinstance(retry_on, (list, tuple)) else (retry_on,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        found.append(f"task {task.name}: retry_on= lists kinds of errors, not {retry_on!r}")
        return None
    return RetryPolicy(backoff=backoff, retry_on=kinds)

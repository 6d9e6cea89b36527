"""A test that a task's body is safe to run twice, for an application's own suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from celery import _state


class NotIdempotent(AssertionError):
    """The second run of a body had an effect of its own."""


@dataclass(frozen=True, kw_only=True)
class Twice:
    """Two runs of one job's body.

    Attributes:
        first: What the first returned.
        second: What the second returned.
        effects: The effects after the first, which the second has left as they were.
    """

    first: Any
    second: Any
    effects: Any


def run_twice(
    task: Any,
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    effects: Callable[[], Any],
    between: Callable[[], object] = lambda: None,
) -> Twice:
    """Run a task's body twice under one job id, as a redelivery does, and compare the effects.

    No broker, no worker: the body runs here, with a request like a worker's. The second run carries the broker's
    redelivery flag. It runs without the guard, which would resolve the repeat: what is tested is the body itself,
    which a crash after its effect makes run again.

    Args:
        task: A Celery task.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        effects: Returns all effects that matter, as a value that can be compared (rows, calls in a peer's books).
        between: Called between the runs: a place to lose what a crash would lose.

    Raises:
        NotIdempotent: The effects after the second run are others than after the first.
    """
    job = str(uuid4())
    first = _run(task, job, args, kwargs or {}, redelivered=False)
    after_first = effects()
    between()
    second = _run(task, job, args, kwargs or {}, redelivered=True)
    after_second = effects()
    if after_first != after_second:
        raise NotIdempotent(
            f"task {task.name} is not safe to run twice: its second run changed the effects\n"
            f"after the first:  {after_first!r}\nafter the second: {after_second!r}"
        )
    return Twice(first=first, second=second, effects=after_first)


def _run(task: Any, job: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, redelivered: bool) -> Any:
    task.push_request(
        id=job,
        root_id=job,
        args=list(args),
        kwargs=dict(kwargs),
        retries=0,
        called_directly=True,
        is_eager=True,
        delivery_info={"redelivered": redelivered},
    )
    stack: Any = getattr(_state, "_task_stack")  # noqa: B009  # the stubs leave it out
    stack.push(task)  # what `celery.current_task` reads: by it a fan-out names its jobs after their parent
    try:
        return task.run(*args, **kwargs)
    finally:
        stack.pop()
        task.pop_request()

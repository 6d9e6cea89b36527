"""A small application around which the spine is tested. `make` builds it, in the tests and in their workers alike.

Each body notes that it ran, as one line of JSON in a file named after its job.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

from celery import Celery, Task, chain, chord, group, shared_task, signals, states
from celery.backends.redis import RedisBackend

from slackwater import Backoff, Entry, Lane, Schedule, Settings, Slackwater, Tempo, every, host, hours, seconds
from slackwater.inspection import mark_of

MODULE = "tests.integration.celery.worker"
LANES = ("waiting", "heavy")
PREFIX = "SPINE_"
GATE_OPENS_WITHIN_S = 60
AnyTask: Any = Task
AnyBackend: Any = RedisBackend
shared: Any = shared_task


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where an application lives."""

    broker_url: str
    backend_url: str
    store_url: str
    prefix: str
    folder: str
    beat: str = ""

    @property
    def environment(self) -> dict[str, str]:
        return {PREFIX + name.upper(): value for name, value in asdict(self).items()}

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        given = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
        return cls(**{name.removeprefix(PREFIX).lower(): value for name, value in given.items()})


def make(
    place: Place, *, tempo: Tempo | None = None, settings: Settings | None = None, clock: Any = None
) -> Slackwater:
    app = Celery("spine", broker=place.broker_url, backend=place.backend_url, set_as_current=False)
    app.conf.worker_hijack_root_logger = False
    sw = Slackwater(
        app,
        store=place.store_url,
        lanes=[Lane("waiting", slots=4, pool="threads"), Lane("heavy", slots=2, waits_on=[host])],
        schedule=schedule(place),
        prefix=place.prefix,
        clock=clock,
        settings=settings
        or Settings(
            tempo=tempo or Tempo.real(),
            presence_every=timedelta(seconds=0.2),
            presence_lives_for=timedelta(seconds=5),
            settle_every=timedelta(seconds=0.2),
        ),
    )
    app.place = Path(place.folder)  # type: ignore[attr-defined]
    add_tasks(app, sw)
    return sw


def schedule(place: Place) -> Schedule:
    if not place.beat:
        return Schedule()
    return Schedule(entries={"sweep": Entry(every(seconds(float(place.beat))), expires=hours(1), args=(3,))})


class OwnBase(AnyTask):  # type: ignore[misc]
    """A base class that an application brings along."""

    abstract = True


class ClassBased(AnyTask):  # type: ignore[misc]
    """A task written as a class."""

    def __init__(self, lane: str) -> None:
        self.lane = lane
        self.name = f"{lane}.class_based"

    def run(self, *args: Any) -> None:
        note(self, *args)


def note(task: Any, *args: Any) -> Any:
    """Say that the body runs, with what it carries."""
    mark, request = mark_of(task.request), task.request
    line = {
        "pid": os.getpid(),
        "mark": None if mark is None else mark.to_header(),
        "parent": request.parent_id,
        "redelivered": bool((request.delivery_info or {}).get("redelivered")),
        "args": args,
    }
    write(task.app, f"{request.id}.ran", line)
    return args[0] if args else None


def write(app: Any, name: str, line: Any) -> None:
    with (app.place / name).open("a") as file:
        file.write(json.dumps(line) + "\n")


for _lane in LANES:
    shared(name=f"{_lane}.shared", lane=_lane, bind=True)(note)


def add_tasks(app: Any, sw: Slackwater) -> None:
    for lane in LANES:
        app.task(name=f"{lane}.note", lane=lane, bind=True, shared=False)(note)
        app.task(name=f"{lane}.own_base", lane=lane, bind=True, shared=False, base=OwnBase)(note)
        app.register_task(ClassBased(lane))
        app.task(name=f"{lane}.wait_at_gate", lane=lane, bind=True, shared=False)(wait_at_gate)
    app.task(name="retry_once", lane="waiting", bind=True, shared=False)(retry_once)
    app.task(name="retry_in_a_race", lane="waiting", bind=True, shared=False, backend=late_to_say_retry(app))(
        retry_once
    )
    app.task(name="retry_with", lane="waiting", bind=True, shared=False)(retry_with)
    app.task(name="replace_itself", lane="waiting", bind=True, shared=False)(replace_itself)
    add_delivered(app)
    app.task(name="fail", lane="waiting", bind=True, shared=False)(fail)
    app.task(name="sweep", lane="waiting", bind=True, shared=False)(_sweep(sw))
    app.task(name="sweep_twice", lane="waiting", bind=True, shared=False)(_sweep_twice(sw))
    app.task(name="every_way", lane="waiting", bind=True, shared=False)(every_way)


def add_delivered(app: Any) -> None:
    """Add tasks with keys, leases, attempts and retry policies."""
    for lane in LANES:
        app.task(name=f"{lane}.keyed", lane=lane, bind=True, shared=False, key=f"{lane}:{{effect}}")(keyed)
        app.task(name=f"{lane}.leased", lane=lane, bind=True, shared=False, lease=f"{lane}:{{account}}")(leased)
    waits = {"key": "waits:{effect}", "key_taken": "wait"}
    app.task(name="keyed_that_waits", lane="waiting", bind=True, shared=False, **waits)(keyed)
    fresh = {"key": "fresh:{effect}", "fresh_for": hours(1)}
    app.task(name="keyed_while_fresh", lane="waiting", bind=True, shared=False, **fresh)(keyed)
    app.task(name="leased_or_not", lane="waiting", bind=True, shared=False, lease="lon:{account}", lease_taken="skip")(
        leased
    )
    app.task(name="replaces", lane="waiting", bind=True, shared=False, lease="r:{account}", lease_taken="replace")(
        leased
    )
    app.task(name="kills_itself", lane="heavy", bind=True, shared=False)(kill_itself)
    quick = Backoff(tries=3, base=seconds(0.6), jitter=False)
    app.task(name="fails_by_policy", lane="waiting", bind=True, shared=False, backoff=quick, retry_on=[OSError])(
        fail_by_policy
    )
    app.task(name="retry_later", lane="waiting", bind=True, shared=False)(retry_later)


def keyed(task: Any, effect: str, gate: str | None = None) -> str:
    note(task, effect)
    if gate is not None:
        await_gate(task, gate)
    return f"{effect} by {task.request.id}"


def leased(task: Any, account: str, gate: str | None = None) -> int:
    """Hold the lease until the gate opens; return the fence."""
    fence = Slackwater.of(task.app).fence()
    assert fence is not None
    write(task.app, f"lease-{account}", {"job": task.request.id, "event": "begins", "fence": fence.token})
    note(task, account)
    if gate is not None:
        await_gate(task, gate)
    write(task.app, f"lease-{account}", {"job": task.request.id, "event": "ends", "fence": fence.token})
    return fence.token


def kill_itself(task: Any, times: int = 1000) -> str:
    note(task)
    file = task.app.place / f"{task.request.id}.ran"
    if len(file.read_text().splitlines()) <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


def fail_by_policy(task: Any, kind: str, times: int) -> int:
    """Raise so many times, then return how often it ran."""
    note(task)
    runs = len((task.app.place / f"{task.request.id}.ran").read_text().splitlines())
    if runs <= times:
        raise {"peer": ConnectionResetError, "mistake": ArithmeticError}[kind]("as it was asked to")
    return runs


def retry_later(task: Any, after_s: float) -> None:
    note(task)
    if task.request.retries == 0:
        raise task.retry(countdown=after_s)


def wait_at_gate(task: Any, gate: str) -> None:
    note(task)
    await_gate(task, gate)


def await_gate(task: Any, gate: str) -> None:
    until = time.monotonic() + GATE_OPENS_WITHIN_S
    while not (task.app.place / gate).exists() and time.monotonic() < until:
        time.sleep(0.02)


def retry_once(task: Any, gate: str | None = None) -> None:
    """Retry once, after the gate has opened."""
    note(task)
    if gate is not None:
        await_gate(task, gate)
    if task.request.retries == 0:
        raise task.retry(countdown=0)


def late_to_say_retry(app: Any) -> Any:
    """Return a result backend that writes RETRY late: a second after it looked, or over what came in between."""

    class LateToSayRetry(AnyBackend):  # type: ignore[misc]
        def _set_with_state(self, key: Any, value: Any, state: Any) -> None:
            until = time.monotonic() + 1
            while state == states.RETRY and time.monotonic() < until and b"SUCCESS" not in (self.get(key) or b""):
                time.sleep(0.01)
            super()._set_with_state(key, value, state)
            if state == states.RETRY:
                write(app, f"{json.loads(value)['task_id']}.retried", {})

    return LateToSayRetry(url=app.conf.result_backend, app=app)


def retry_with(task: Any, args: list[Any]) -> None:
    """Retry with what no serializer takes."""
    note(task)
    if task.request.retries == 0:
        raise task.retry(countdown=0, args=[args, object()])


def replace_itself(task: Any) -> None:
    note(task)
    raise task.replace(task.app.tasks["waiting.note"].si(11))


def fail(task: Any) -> None:
    note(task)
    raise ArithmeticError("as it was asked to")


def _sweep(sw: Slackwater) -> Any:
    def sweep(task: Any, count: int) -> list[str]:
        note(task)
        found = sw.fan_out(task.app.tasks["waiting.note"], [(number,) for number in range(count)])
        return list(found.published)

    return sweep


def _sweep_twice(sw: Slackwater) -> Any:
    def sweep_twice(task: Any, count: int) -> list[list[str]]:
        note(task)
        items = [(number,) for number in range(count)]
        return [list(sw.fan_out(task.app.tasks["waiting.note"], items).published) for _ in range(2)]

    return sweep_twice


def every_way(task: Any) -> dict[str, list[str]]:
    """Publish in each way that Celery has; return the ids by way."""
    note(task)
    tasks = task.app.tasks
    one, again = tasks["waiting.note"], tasks["retry_once"]
    linked = one.si(2).set(task_id=f"{task.request.id}-linked")
    grouped: Any = group(one.si(3), one.si(4)).apply_async()
    chained: Any = chain(one.si(5), one.si(6)).apply_async()
    ended: Any = chord([one.si(7), one.si(8)])(one.si(9))
    return {
        "delay": [one.delay(0).id],
        "apply_async": [one.apply_async((1,), link=linked).id],
        "link": [linked.options["task_id"]],
        "send_task": [task.app.send_task("waiting.note", (10,)).id],
        "group": [each.id for each in grouped.children],
        "chain": [chained.parent.id, chained.id],
        "chord": [*(each.id for each in ended.parent.children), ended.id],
        "retry": [again.delay().id],
    }


def note_prerun(sender: Any = None, task_id: str = "", **_: Any) -> None:
    write(sender.app, f"{task_id}.prerun", {})


def follow_signals() -> None:
    signals.task_prerun.connect(note_prerun, weak=False)

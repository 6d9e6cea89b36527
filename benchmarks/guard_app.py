"""The application whose jobs are counted, plain and guarded, with the same settings; `GUARD_*` says where it lives."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

from celery import Celery, signals

from slackwater import Lane, Slackwater

PLAIN, GUARDED, KEYED = VARIANTS = ("plain", "guarded", "keyed")
LANES = (*VARIANTS, "crowd", "mortal")
CROWD = 1_000
GATE_OPENS_WITHIN_S = 300.0
SHARED = (
    "task_acks_late",
    "task_reject_on_worker_lost",
    "worker_prefetch_multiplier",
    "task_track_started",
    "task_ignore_result",
    "task_protocol",
    "task_queues",
    "broker_transport_options",
    "redis_max_connections",
    "broker_connection_retry_on_startup",
)
"""What Slackwater sets on an application, and plain Celery gets here too."""

FOLDER = Path(os.environ.get("GUARD_FOLDER", "."))
PREFIX = os.environ.get("GUARD_PREFIX", "")


def _guarded() -> Slackwater:
    made = Slackwater(
        _celery(),
        lanes=[
            *(Lane(name, slots=16, pool="threads") for name in VARIANTS),
            Lane("crowd", slots=CROWD, pool="threads"),
            Lane("mortal", slots=1, pool="prefork"),
        ],
        prefix=PREFIX,
    )
    for lane in LANES:
        _add(made.app, lane)
    made.app.task(name="crowd.leased", lane="crowd", lease="c:{number}", shared=False)(wait_at_gate)
    return made


def _plain(guarded: Slackwater) -> Celery:
    made = _celery()
    for name in SHARED:
        made.conf[name] = guarded.app.conf[name]
    made.conf.task_routes = {"plain.*": {"queue": guarded.queues[PLAIN]}}
    _add(made, PLAIN)
    return made


def _celery() -> Celery:
    made = Celery(
        "guard",
        broker=os.environ["CELERY_BROKER_URL"],
        backend=os.environ["CELERY_RESULT_BACKEND"],
        set_as_current=False,
    )
    made.conf.worker_hijack_root_logger = False
    return made


def _add(app: Celery, lane: str) -> None:
    names = {"key": "k:{number}", "lease": "l:{number}"} if lane == KEYED else {}
    app.task(name=f"{lane}.nothing", lane=lane, shared=False, **names)(nothing)
    app.task(name=f"{lane}.wait_at_gate", lane=lane, shared=False)(wait_at_gate)
    app.task(name=f"{lane}.say_start", lane=lane, shared=False)(say_start)


def nothing(number: int) -> None:
    """Do nothing."""


def wait_at_gate(number: int, gate: str) -> None:
    """Say that this body runs, and keep its slot until the gate opens."""
    with (FOLDER / f"{gate}.waiting").open("a") as file:
        file.write(f"{number}\n")
    _gate(gate).wait(GATE_OPENS_WITHIN_S)


def say_start(gate: str) -> None:
    """Say when this body started, and in which process; keep the slot until the gate opens."""
    with (FOLDER / f"{gate}.started").open("a") as file:
        file.write(f"{time.time()} {os.getpid()}\n")
    _gate(gate).wait(GATE_OPENS_WITHIN_S)


_gates: dict[str, threading.Event] = {}
_gates_lock = threading.Lock()


def _gate(name: str) -> threading.Event:
    # One thread looks for all bodies: a thousand that look would be what is measured.
    with _gates_lock:
        if name not in _gates:
            _gates[name] = threading.Event()
            threading.Thread(target=_watch, args=(name,), daemon=True).start()
        return _gates[name]


def _watch(name: str) -> None:
    until = time.monotonic() + GATE_OPENS_WITHIN_S
    while not (FOLDER / name).exists() and time.monotonic() < until:
        time.sleep(0.02)
    _gates[name].set()


def _count_statements(**_: Any) -> None:
    """Note what the presence thread sends to the store, a line a statement."""
    from sqlalchemy import Engine, event

    def note(*arguments: Any) -> None:
        if threading.current_thread().name == "slackwater-presence":
            with (FOLDER / "statements").open("a") as file:
                file.write(" ".join(str(arguments[2]).split())[:2_000] + "\n")

    event.listen(Engine, "before_cursor_execute", note)


if os.environ.get("GUARD_COUNTS_STATEMENTS"):
    signals.celeryd_init.connect(_count_statements, weak=False)

sw = _guarded()
plain = _plain(sw)
app = plain if os.environ.get("GUARD_VARIANT") == PLAIN else sw.app

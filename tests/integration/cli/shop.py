"""An application as a customer has one: its addresses come from the environment."""

import os
import time
from pathlib import Path
from typing import Any

from celery import Celery

from slackwater import Entry, Lane, Schedule, Slackwater, every, host, hours, seconds
from slackwater.inspection import mark_of

CARELESS = "SHOP_CARELESS" in os.environ
ENTRIES = ("bake", "brew") if CARELESS else ("bake",)
app: Any = Celery("shop")
app.conf.worker_hijack_root_logger = False
sw = Slackwater(
    app,
    lanes=[Lane("till", slots=3, protected=True), Lane("bakery", slots=1, waits_on=[host]), Lane("cellar", slots=1)],
    schedule=Schedule(entries={name: Entry(every(seconds(1)), expires=hours(1)) for name in ENTRIES}),
    prefix=os.environ.get("SHOP_PREFIX", ""),
)


@app.task(name="bake", lane="bakery")  # type: ignore[untyped-decorator]
def bake() -> None:
    """Bake."""


@app.task(name="fetch", lane="cellar")  # type: ignore[untyped-decorator]
def fetch() -> None:
    """Fetch something; nobody works in the cellar."""


@app.task(name="serve", lane="till")  # type: ignore[untyped-decorator]
def serve(until: str) -> None:
    """Serve until a file exists."""
    deadline = time.monotonic() + 60
    while not Path(until).exists() and time.monotonic() < deadline:
        time.sleep(0.02)


@app.task(name="bounce", lane="till", bind=True)  # type: ignore[untyped-decorator]
def bounce(self: Any, customer: str, served: str | None = None) -> None:
    """Serve a known customer."""
    if served is None:
        raise LookupError("nobody of that name")
    mark = mark_of(self.request)
    Path(served).write_text(f"{self.request.id} for {mark.replay_of if mark else None}")


if CARELESS or "SHOP_STRAY" in os.environ:

    @app.task(name="sweep_the_floor")  # type: ignore[untyped-decorator]
    def sweep_the_floor() -> None:
        """Sweep; no lane is given for it."""

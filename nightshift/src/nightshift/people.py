"""People: all night long somebody clicks "submit", and watches a spinner until the gateway has answered.

The script of clicks is drawn from the seed beforehand, ids included, so that the morning report knows what was
demanded whatever became of the process that clicked.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from kombu.exceptions import OperationalError

from nightshift.journal import ANSWERED, CLICKED, Journal
from slackwater import JobState
from slackwater.errors import BrokerUnavailable
from slackwater.inspection import JobStates

LOOK_S = 0.02
"""How often a spinner looks."""
PATIENCE_S = 60.0
"""How long people watch a spinner at most, and go on clicking where the click does not get through."""
CLICKS_AGAIN_S = 0.5
NOT_GOT_THROUGH = (OperationalError, BrokerUnavailable)
"""What a click comes to while the broker is away: whoever clicked clicks again, for the same job."""


@dataclass(frozen=True, kw_only=True)
class PlannedClick:
    """A click to come.

    Attributes:
        job: Id of the job that it demands.
        run_id: The agent run to be filed.
        at: When, on the calendar clock.
    """

    job: str
    run_id: int
    at: datetime


def script(
    runs: Sequence[int], *, seed: int, night: str, starts_at: datetime, ends_at: datetime
) -> tuple[PlannedClick, ...]:
    """Draw the night's clicks: one a run, at uniformly drawn instants (a Poisson stream given its count).

    Args:
        runs: Approved runs.
        seed: Chance; the same seed draws the same clicks.
        night: Name of this night; no two nights share a job's id.
        starts_at: First instant, calendar clock.
        ends_at: Last instant, calendar clock.
    """
    chance = random.Random(f"clicks:{seed}")
    span = (ends_at - starts_at).total_seconds()
    order = chance.sample(list(runs), len(runs))
    instants = sorted(chance.uniform(0, span) for _ in order)
    return tuple(
        PlannedClick(
            job=str(uuid5(NAMESPACE_URL, f"nightshift:{night}:click:{run}")),
            run_id=run,
            at=starts_at + timedelta(seconds=at),
        )
        for run, at in zip(order, instants, strict=True)
    )


@dataclass
class Spinners:
    """The spinners that are watched now."""

    states: JobStates
    journal: Journal
    now: Callable[[], float] = time.monotonic
    watched: dict[str, float] = field(default_factory=dict)
    given_up: int = 0

    def add(self, job: str) -> None:
        """Start watching one."""
        self.watched[job] = self.now() + PATIENCE_S

    def look(self) -> None:
        """Look at all of them once; write down those that have ended. Where nobody answers, they go on spinning."""
        known: Mapping[str, JobState] = {}
        with suppress(BrokerUnavailable):
            known = self.states.states(list(self.watched)) if self.watched else {}
        for job in [job for job, state in known.items() if state.final]:
            self.journal.write(ANSWERED, job=job, state=known[job].value)
            del self.watched[job]
        for job in [job for job, until in self.watched.items() if until < self.now()]:
            self.given_up += 1
            del self.watched[job]


@dataclass
class Clicks:
    """The clicks that have not got through yet.

    Attributes:
        submit: Publishes the job of a click; raises one of `NOT_GOT_THROUGH` where it does not get through.
        now: The monotonic clock, in seconds.
        waiting: By job: the click, and until when whoever clicked has patience.
    """

    submit: Callable[[PlannedClick], object]
    now: Callable[[], float] = time.monotonic
    waiting: dict[str, tuple[PlannedClick, float]] = field(default_factory=dict)
    _again_at: float = field(default=0.0, init=False)

    def add(self, click: PlannedClick) -> None:
        """Click, for the first time."""
        self.waiting[click.job] = (click, self.now() + PATIENCE_S)
        self._again_at = 0.0

    def press(self) -> list[PlannedClick]:
        """Click again where it is time; return what got through.

        Raises:
            OperationalError, BrokerUnavailable: Somebody has no more patience.
        """
        through: list[PlannedClick] = []
        if not self.waiting or self.now() < self._again_at:
            return through
        for click, until in list(self.waiting.values()):
            try:
                self.submit(click)
            except NOT_GOT_THROUGH:
                if self.now() > until:
                    raise
                self._again_at = self.now() + CLICKS_AGAIN_S
                return through
            through.append(click)
            del self.waiting[click.job]
        return through


def click_all(clicks: Sequence[PlannedClick], journal: Journal) -> int:
    """Click as the script says, and watch each spinner until it ends.

    Returns:
        How many had no answer in time.
    """
    # Late: the application reads the environment when it is imported.
    from nightshift.app import app, sw
    from nightshift.filings.tasks import submit_approved_run

    spinners = Spinners(JobStates(app), journal)
    pressed = Clicks(lambda click: submit_approved_run.apply_async((click.run_id,), task_id=click.job))

    def look() -> None:
        for through in pressed.press():
            spinners.add(through.job)
        spinners.look()

    for click in clicks:
        due = sw.clock.run_at(click.at)
        while (left := (due - sw.clock.run()).total_seconds()) > 0:
            look()
            time.sleep(min(LOOK_S, left))
        journal.write(CLICKED, job=click.job, run_id=click.run_id)
        pressed.add(click)
        look()
    while spinners.watched or pressed.waiting:
        look()
        time.sleep(LOOK_S)
    return spinners.given_up


def write_script(clicks: Sequence[PlannedClick], path: Path) -> None:
    """Write a script for the process that clicks."""
    path.write_text(json.dumps([[one.job, one.run_id, one.at.isoformat()] for one in clicks]))


def run_people(path: Path) -> None:
    """Click as a written script says."""
    from nightshift.app import settings

    clicks = [
        PlannedClick(job=job, run_id=run_id, at=datetime.fromisoformat(at))
        for job, run_id, at in json.loads(path.read_text())
    ]
    click_all(clicks, Journal(settings.folder / "journal"))

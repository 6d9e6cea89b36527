"""A program that publishes a chord and stands still before its last member goes out, to be killed there."""

import os
from datetime import datetime
from typing import Any

from celery import chord, signals
from tests.integration.cases.application import make
from tests.integration.celery.application import Place, await_gate, write

from slackwater.core.job import HEADER, Mark

START_BY = "CASES_START_BY"
STOPS_BEFORE = "third-1"


def publish() -> None:
    sw = make(Place.from_environment(os.environ))
    note: Any = sw.app.tasks["heavy.note"]

    def stand_still(headers: Any = None, **_: Any) -> None:
        if headers["id"] == STOPS_BEFORE:
            write(sw.app, "stands_still", {})
            await_gate(note, "never opened")

    signals.before_task_publish.connect(stand_still)
    mark = Mark(published_at=sw.clock.run(), start_by=datetime.fromisoformat(os.environ[START_BY]))
    members = [
        note.si(job).set(task_id=job, headers={HEADER: mark.to_header()})
        for job in ("first-1", "second-1", STOPS_BEFORE)
    ]
    chord(members, note.si("body").set(task_id="body-1"))()


if __name__ == "__main__":
    publish()

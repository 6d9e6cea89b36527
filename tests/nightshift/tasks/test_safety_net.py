"""The second bank fan-out of the night: it does what the first one did not, and nothing twice."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from uuid import uuid4

from tests import waiting
from tests.nightshift.tasks.conftest import ACCOUNTS, Night

from nightshift.world.books import read_calls
from nightshift.world.kinds import PathKind
from slackwater import JobState

WITHIN_S = 60.0

eventually = partial(waiting.eventually, within_s=WITHIN_S)
SYNCED = "SELECT id FROM nightshift.accounts WHERE last_synced_at > now() - interval '10 minutes'"


def fan_out(night: Night, *, closes_in: timedelta) -> str:
    """Run the fan-out's body, as an occurrence whose window closes then; return its job's id."""
    task, job = night.task("update_all_transactions"), str(uuid4())
    start_by = night.sw.clock.calendar() + closes_in
    task.apply(task_id=job, headers=night.sw.header(start_by=start_by)).get()
    return job


@contextmanager
def a_worker(night: Night) -> Iterator[None]:
    """A worker of the bank lane, in a process of its own."""
    words = [sys.executable, "-m", "slackwater", "-A", "nightshift.app", "worker", "transaction_sync"]
    env = {**os.environ, **night.environment}
    with (night.folder / "worker.log").open("ab") as log:
        worker = subprocess.Popen(words, stdout=log, stderr=log, env=env, start_new_session=True)
    try:
        yield
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(timeout=WITHIN_S)


def test_when_an_occurrence_expires_the_next_does_all_its_work_and_a_third_has_none_left(night: Night) -> None:
    every = {(number,) for number in range(1, ACCOUNTS + 1)}
    fan_out(night, closes_in=timedelta(seconds=-1))
    assert night.waiting() == set()
    assert night.rows(SYNCED) == []
    fan_out(night, closes_in=timedelta(hours=1))
    jobs = night.waiting()
    assert len(jobs) == ACCOUNTS
    with a_worker(night):
        eventually(lambda: set(night.rows(SYNCED)) == every)
        eventually(lambda: all(state is JobState.DONE for state in keys(night)))
    asked = len(listings(night))
    fan_out(night, closes_in=timedelta(hours=1))
    assert night.waiting() == set()
    assert len(listings(night)) == asked


def test_what_expired_on_its_way_is_not_taken_for_pending_by_the_next(night: Night) -> None:
    fan_out(night, closes_in=timedelta(seconds=4))
    late = night.waiting()
    assert len(late) == ACCOUNTS
    closed_at = night.sw.clock.calendar() + timedelta(seconds=4)
    eventually(lambda: night.sw.clock.calendar() > closed_at)
    with a_worker(night):
        eventually(lambda: len(night.sw.store.endings.find(late)) == ACCOUNTS)
        eventually(lambda: not night.waiting())
    assert {one.state for one in night.sw.store.endings.find(late).values()} == {JobState.EXPIRED}
    fan_out(night, closes_in=timedelta(hours=1))
    assert len(night.waiting() - late) == ACCOUNTS


def test_the_net_takes_up_only_what_was_not_brought(night: Night) -> None:
    task = night.task("update_transactions_by_bank_account")
    done = task.delay(1).id
    with a_worker(night):
        eventually(lambda: keys(night)[0] is JobState.DONE)
    fan_out(night, closes_in=timedelta(hours=1))
    waiting = night.waiting()
    assert len(waiting) == ACCOUNTS - 1
    assert done not in waiting


def keys(night: Night) -> list[JobState | None]:
    found = [night.sw.store.runs.key(f"sync:{number}") for number in range(1, ACCOUNTS + 1)]
    return [None if key is None else key.state for key in found]


def listings(night: Night) -> list[str | None]:
    return [call.job_id for call in read_calls(night.world.books) if call.kind is PathKind.TRANSACTIONS]

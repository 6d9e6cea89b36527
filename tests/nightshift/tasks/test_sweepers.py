"""Sweepers find what nobody is at any more, and nothing else."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from tests.nightshift.tasks.conftest import Night

from nightshift import journal
from slackwater import JobState
from slackwater.core.admission import Ask, KeyRule, LeaseRule, key_lease
from slackwater.ports import Finish

LIVES = timedelta(minutes=5)
BOOT = UUID(int=1)


@pytest.fixture
def begin(night: Night) -> Callable[..., None]:
    """Begin a job's body as a worker does: under its key and lease."""

    def begin(job: str, *, key: str, lease: str) -> None:
        ask = Ask(
            job=job,
            tries=0,
            task="any",
            boot=BOOT,
            redelivered=False,
            key=KeyRule(name=key),
            lease=LeaseRule(name=lease, lives_for=LIVES),
        )
        night.sw.store.runs.begin([ask])

    return begin


@pytest.fixture
def mark_syncing(night: Night) -> Callable[[int, str], None]:
    """Mark an account as syncing by a job that began long ago."""

    def mark(account: int, job: str) -> None:
        night.execute(
            "UPDATE nightshift.accounts SET syncing_since = now() - interval '1 hour', syncing_by = :job "
            "WHERE id = :id",
            job=job,
            id=account,
        )

    return mark


def sweep(night: Night, name: str) -> tuple[int, int]:
    done = night.sw.sweepers[name].sweeper.sweep()
    return done.found_count, done.recovered_count


def marked(night: Night) -> set[int]:
    return {row[0] for row in night.rows("SELECT id FROM nightshift.accounts WHERE syncing_by IS NOT NULL")}


def begin_submission(night: Night, run: int, *, age: timedelta = timedelta(hours=1)) -> None:
    night.execute(
        "UPDATE nightshift.agent_runs SET state = 'submitting', filing_key = :key, begun_at = :at WHERE id = :id",
        key=f"agent-run:{run}",
        at=night.sw.clock.calendar() - age,
        id=run,
    )


def swept(night: Night, sweeper: str) -> list[str]:
    events = journal.read(night.folder / "journal")
    mine = [one for one in events if one["event"] == journal.SWEPT and one["sweeper"] == sweeper]
    return [thing for one in mine for thing in one["things"]]


def test_on_a_good_night_they_find_nothing(night: Night) -> None:
    assert sweep(night, "recover_stuck_syncs") == sweep(night, "requeue_stuck_runs") == (0, 0)
    assert night.waiting() == set()


def test_a_sync_that_is_under_way_is_left_alone(
    night: Night, begin: Callable[..., None], mark_syncing: Callable[[int, str], None]
) -> None:
    mark_syncing(1, job := str(uuid4()))
    begin(job, key="sync:1", lease="account:1")
    assert sweep(night, "recover_stuck_syncs") == (0, 0)
    assert marked(night) == {1}


def test_a_sync_that_waits_for_its_next_try_is_left_alone(
    night: Night, mark_syncing: Callable[[int, str], None]
) -> None:
    task = night.task("update_transactions_by_bank_account")
    job = task.delay(1).id
    mark_syncing(1, job)
    assert sweep(night, "recover_stuck_syncs") == (0, 0)
    assert night.waiting() == {job}


def test_a_sync_whose_lease_is_gone_is_published_again_once(
    night: Night, begin: Callable[..., None], mark_syncing: Callable[[int, str], None]
) -> None:
    mark_syncing(2, job := str(uuid4()))
    begin(job, key="sync:2", lease="account:2")
    night.sw.store.runs.lapse_all(BOOT)
    assert sweep(night, "recover_stuck_syncs") == (1, 1)
    assert len(night.waiting()) == 1
    assert job not in night.waiting()
    assert marked(night) == set()
    assert sweep(night, "recover_stuck_syncs") == (0, 0)
    assert swept(night, "recover_stuck_syncs")[-1] == "account 2"


def test_a_sync_that_has_failed_loses_its_mark_and_is_left_to_the_next_fan_out(
    night: Night, begin: Callable[..., None], mark_syncing: Callable[[int, str], None]
) -> None:
    mark_syncing(3, job := str(uuid4()))
    begin(job, key="sync:3", lease="account:3")
    night.sw.store.runs.finish(
        [Finish(job=job, tries=0, state=JobState.FAILED, ended_at=night.sw.clock.calendar(), key="sync:3")]
    )
    assert sweep(night, "recover_stuck_syncs") == (1, 1)
    assert (marked(night), night.waiting()) == (set(), set())


def test_a_submission_that_has_just_begun_is_left_alone(night: Night) -> None:
    begin_submission(night, 1, age=timedelta(seconds=1))
    assert sweep(night, "requeue_stuck_runs") == (0, 0)


def test_a_submission_that_is_under_way_is_left_alone(night: Night, begin: Callable[..., None]) -> None:
    begin_submission(night, 1)
    begin(str(uuid4()), key="agent-run:1", lease=key_lease("agent-run:1"))
    assert sweep(night, "requeue_stuck_runs") == (0, 0)


def test_a_submission_with_nobody_at_work_is_published_again_and_not_twice(night: Night) -> None:
    begin_submission(night, 1)
    assert sweep(night, "requeue_stuck_runs") == (1, 1)
    [job] = night.waiting()
    assert sweep(night, "requeue_stuck_runs") == (0, 0)
    assert night.waiting() == {job}
    assert night.task("submit_approved_run").run(1)
    assert night.rows("SELECT state FROM nightshift.agent_runs WHERE id = 1") == [("submitted",)]

"""The guard, in front of real bodies: threads and prefork, both brokers."""

import os
import signal
from datetime import timedelta
from typing import Any

import pytest
from celery import chord, group
from tests.integration.celery.application import LANES
from tests.integration.celery.spine import AN_HOUR, Spine, eventually

from slackwater.adapters.brokers.results import state_of
from slackwater.core.job import JobState

KINDS = ("note", "own_base", "shared", "class_based")
lanes = pytest.mark.parametrize("lane", LANES)


def publish_late(spine: Spine, lane: str) -> list[str]:
    """Publish one late job of each kind of task, and one by name alone."""
    app, headers = spine.behind.app, spine.late_header()
    jobs = [app.tasks[f"{lane}.{kind}"].apply_async((1,), headers=headers).id for kind in KINDS]
    return [*jobs, app.send_task(f"{lane}.note", (1,), headers=headers).id]


@lanes
def test_a_job_whose_start_by_has_passed_never_runs_whatever_its_kind(spine: Spine, lane: str) -> None:
    before = spine.presence(lane).lanes[lane]
    jobs = publish_late(spine, lane)
    metas = [spine.ended(job) for job in jobs]
    assert [(meta["status"], str(meta["result"])) for meta in metas] == [("REVOKED", "expired: late")] * len(jobs)
    assert [state_of(meta) for meta in metas] == [JobState.EXPIRED] * len(jobs)
    assert not [job for job in jobs if spine.runs(job) or spine.preruns(job)]
    eventually(lambda: len(spine.sw.store.endings.find(jobs)) == len(jobs))
    endings = spine.sw.store.endings.find(jobs)
    assert {(one.state, one.reason, one.lane) for one in endings.values()} == {(JobState.EXPIRED, "late", lane)}
    late = before.expired.get("late", 0) + len(jobs)
    eventually(lambda: spine.presence(lane).lanes[lane].expired == {"late": late})
    assert spine.presence(lane).lanes[lane].started == before.started


@lanes
def test_a_job_in_time_runs_once_and_is_counted_as_started(spine: Spine, lane: str) -> None:
    before = spine.presence(lane).lanes[lane]
    tasks = [spine.tasks[f"{lane}.{kind}"] for kind in KINDS]
    jobs = [
        task.apply_async((1,), headers=spine.header(start_by=spine.sw.clock.calendar() + AN_HOUR)).id for task in tasks
    ]
    spine.done(*jobs)
    assert [len(spine.runs(job)) for job in jobs] == [1] * len(jobs)
    assert [len(spine.preruns(job)) for job in jobs] == [1] * len(jobs)

    def counted() -> bool:
        now = spine.presence(lane).lanes[lane]
        return now.started == before.started + len(jobs) and now.finished == before.finished + len(jobs)

    eventually(counted)
    assert spine.presence(lane).lanes[lane].expired == before.expired


def test_a_body_that_runs_is_counted_as_busy_and_one_that_raises_as_failed(spine: Spine) -> None:
    before = spine.presence("waiting").lanes["waiting"]
    job = spine.tasks["waiting.wait_at_gate"].delay("busy").id
    eventually(lambda: spine.presence("waiting").lanes["waiting"].busy == 1)
    spine.open("busy")
    spine.done(job)
    assert spine.ended(spine.tasks["fail"].delay().id)["status"] == "FAILURE"
    eventually(lambda: spine.presence("waiting").lanes["waiting"].failed == before.failed + 1)
    assert spine.presence("waiting").lanes["waiting"].busy == 0


def test_a_foreign_message_without_a_mark_runs(spine: Spine, foreign: Any) -> None:
    job = foreign("waiting.note", 1)
    eventually(lambda: spine.runs(job))
    assert [run["mark"] for run in spine.runs(job)] == [None]


@lanes
def test_a_chord_with_a_member_that_expires_ends(spine: Spine, lane: str) -> None:
    one = spine.behind.app.tasks[f"{lane}.note"]
    ended = chord([one.si(1), one.si(2).set(headers=spine.late_header())])(one.si(3))
    meta = spine.ended(ended.id)
    assert meta["status"] == "FAILURE"
    assert "expired: late" in str(meta["result"])
    assert not spine.runs(ended.id)


def test_a_group_with_a_member_that_expires_ends(spine: Spine) -> None:
    one = spine.behind.app.tasks["waiting.note"]
    members: Any = group(one.si(1), one.si(2).set(headers=spine.late_header())).apply_async()
    assert [spine.ended(member.id)["status"] for member in members.children] == ["SUCCESS", "REVOKED"]


def test_a_job_whose_pool_process_is_killed_runs_again(spine: Spine) -> None:
    job = spine.tasks["heavy.wait_at_gate"].delay("killed").id
    first = eventually(lambda: spine.runs(job))[0]
    os.kill(first["pid"], signal.SIGKILL)
    second = eventually(lambda: spine.runs(job)[1:])[0]
    assert second["pid"] != first["pid"]
    assert second["redelivered"]
    spine.open("killed")
    spine.done(job)


def test_a_parent_job_that_retries_goes_on(spine: Spine) -> None:
    job = spine.publish(spine.occurrence("retry_once"))
    spine.done(job)
    runs = spine.runs(job)
    assert len(runs) == 2
    assert len({run["mark"]["start_by"] for run in runs}) == 1


def test_a_parent_job_whose_retry_comes_too_late_ends_as_expired(spine: Spine) -> None:
    occurrence = spine.occurrence("retry_once", "late", start_in=timedelta(seconds=1))
    job = spine.publish(occurrence)
    eventually(lambda: spine.runs(job))
    eventually(lambda: spine.sw.clock.calendar() > occurrence.start_by)
    spine.open("late")
    eventually(lambda: spine.sw.store.endings.find([job]))
    eventually(lambda: spine.presence("waiting").lanes["waiting"].busy == 0)
    meta = spine.ended(job)
    assert (meta["status"], str(meta["result"])) == ("REVOKED", "expired: late")
    assert len(spine.runs(job)) == 1
    assert spine.sw.store.endings.find([job])


def test_a_second_copy_of_a_parent_job_does_not_run(spine: Spine) -> None:
    occurrence = spine.occurrence("waiting.wait_at_gate", "copy")
    job = spine.publish(occurrence)
    eventually(lambda: spine.runs(job))
    spine.publish(occurrence)
    after = spine.tasks["waiting.note"].delay().id
    spine.done(after)
    spine.open("copy")
    spine.done(job)
    spine.publish(occurrence)
    spine.done(spine.tasks["waiting.note"].delay().id)
    assert len(spine.runs(job)) == 1


def test_a_late_copy_of_a_job_that_is_done_leaves_its_end_as_it_is(spine: Spine) -> None:
    job = spine.tasks["waiting.note"].delay(1).id
    spine.done(job)
    again = spine.behind.app.tasks["waiting.note"]
    again.apply_async((1,), task_id=job, headers=spine.late_header())
    spine.done(spine.tasks["waiting.note"].delay().id)
    assert spine.meta(job)["status"] == "SUCCESS"
    assert len(spine.runs(job)) == 1
    assert not spine.sw.store.endings.find([job])

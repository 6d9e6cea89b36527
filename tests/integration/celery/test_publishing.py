"""What a message carries, however it is published."""

from datetime import UTC, datetime
from itertools import chain
from typing import Any

from tests.integration.celery.spine import Spine, eventually

from slackwater import Published
from slackwater.core.job import JobState


def carried(spine: Spine, jobs: dict[str, list[str]]) -> dict[str, Any]:
    """Wait until all have ended well; return the marks that each way's bodies saw."""
    spine.done(*chain.from_iterable(jobs.values()))
    return {way: [run["mark"] for job in ids for run in spine.runs(job)] for way, ids in jobs.items()}


def test_each_way_of_publishing_carries_when_it_was_published_and_to_which_lane(spine: Spine) -> None:
    before = spine.sw.clock.run()
    parent = spine.tasks["every_way"].delay()
    spine.done(parent.id)
    marks = carried(spine, spine.meta(parent.id)["result"])
    assert {way: len(found) for way, found in marks.items()} == {
        "delay": 1,
        "apply_async": 1,
        "link": 1,
        "send_task": 1,
        "group": 2,
        "chain": 2,
        "chord": 3,
        "retry": 2,
    }
    for mark in chain.from_iterable(marks.values()):
        assert mark.keys() == {"published_at", "lane"}
        assert mark["lane"] == "waiting"
        assert before < datetime.fromisoformat(mark["published_at"]) < datetime.now(UTC)
    first, second = marks["retry"]
    assert first["published_at"] < second["published_at"]


def test_what_an_occurrences_body_publishes_inherits_its_window_in_each_way(spine: Spine) -> None:
    occurrence = spine.occurrence("every_way")
    parent = spine.publish(occurrence)
    spine.done(parent)
    marks = carried(spine, spine.meta(parent)["result"])
    inherited = {"start_by": occurrence.start_by.isoformat(), "occurrence": str(occurrence.id), "elastic": True}
    for mark in chain.from_iterable(marks.values()):
        assert {name: mark[name] for name in inherited} == inherited


def test_a_late_job_is_not_sent_and_ends_as_expired(spine: Spine) -> None:
    heard: list[Published] = []
    spine.sw.on_published(heard.extend)
    late = spine.tasks["waiting.note"].apply_async(headers=spine.header(start_by=spine.behind.clock.calendar()))
    in_time = spine.tasks["waiting.note"].delay(1)
    meta = spine.meta(late.id)
    assert (meta["status"], str(meta["result"])) == ("REVOKED", "expired: late")
    ending = spine.sw.store.endings.find([late.id])[late.id]
    assert (ending.state, ending.reason) == (JobState.EXPIRED, "late")
    spine.done(in_time.id)
    assert not spine.runs(late.id)
    assert [(one.job, one.task, one.lane, one.parent) for one in heard] == [
        (in_time.id, "waiting.note", "waiting", None)
    ]


def test_a_fan_out_of_500_jobs_runs_each_once_and_each_is_known_by_id(spine: Spine) -> None:
    occurrence = spine.occurrence("sweep", 500)
    parent = spine.publish(occurrence)
    spine.done(parent)
    jobs = spine.meta(parent)["result"]
    assert len(set(jobs)) == 500
    eventually(lambda: all(spine.runs(job) for job in jobs), within_s=40)
    spine.done(*jobs)
    assert {len(spine.runs(job)) for job in jobs} == {1}
    assert {spine.runs(job)[0]["mark"]["occurrence"] for job in jobs} == {parent}
    assert set(spine.sw.store.fan_outs.unsettled(occurrence.id, after="", limit=1000)) == set(jobs)


def test_a_parent_that_runs_twice_asks_for_the_same_children(spine: Spine) -> None:
    parent = spine.tasks["sweep_twice"].delay(5)
    spine.done(parent.id)
    first, second = spine.meta(parent.id)["result"]
    assert first == second
    spine.done(*first)


def test_a_retry_that_ends_before_its_first_run_is_told_stays_ended(spine: Spine) -> None:
    job = spine.tasks["retry_in_a_race"].delay().id
    eventually(lambda: spine.retried(job))
    spine.done(job)
    assert len(spine.runs(job)) == 2


def test_a_job_that_replaces_itself_ends_as_its_replacement(spine: Spine) -> None:
    job = spine.tasks["replace_itself"].delay().id
    spine.done(job)
    assert spine.meta(job)["result"] == 11
    assert len(spine.runs(job)) == 2


def test_a_retry_with_arguments_that_cannot_be_encoded_fails(spine: Spine) -> None:
    job = spine.tasks["retry_with"].delay([]).id
    assert spine.ended(job)["status"] == "FAILURE"
    assert len(spine.runs(job)) == 1

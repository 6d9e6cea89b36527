"""At least once, one effect: keys, leases, attempts and retries on real workers, threads and prefork, both brokers."""

import json
from typing import Any
from uuid import uuid4

import pytest
from celery import chord
from tests.integration.celery.application import LANES
from tests.integration.celery.spine import Spine, eventually

from slackwater.core.job import JobState
from slackwater.ports import LetterFilter

lanes = pytest.mark.parametrize("lane", LANES)


def some() -> str:
    return uuid4().hex[:12]


def revoked_as(spine: Spine, job: str) -> str:
    meta = spine.ended(job)
    assert meta["status"] == "REVOKED"
    return str(meta["result"])


@lanes
def test_a_repeat_of_what_is_done_gets_the_first_result_without_a_second_body(spine: Spine, lane: str) -> None:
    task, effect = spine.tasks[f"{lane}.keyed"], some()
    first = task.delay(effect).id
    spine.done(first)
    repeats = [task.delay(effect).id, spine.sw.app.send_task(f"{lane}.keyed", (effect,)).id]
    spine.done(*repeats)
    assert {spine.meta(job)["result"] for job in repeats} == {f"{effect} by {first}"}
    assert not [job for job in repeats if spine.runs(job)]
    endings = spine.sw.store.endings.find(repeats)
    assert {one.state for one in endings.values()} == {JobState.DUPLICATE}
    assert all(one.reason.startswith(first) for one in endings.values())


@lanes
def test_what_is_linked_to_a_repeat_goes_on_with_the_first_result(spine: Spine, lane: str) -> None:
    task, effect = spine.tasks[f"{lane}.keyed"], some()
    first = task.delay(effect).id
    spine.done(first)
    chained: Any = (task.s(effect) | spine.tasks[f"{lane}.note"].s()).apply_async()
    spine.done(chained.id)
    assert spine.meta(chained.id)["result"] == f"{effect} by {first}"
    assert not spine.runs(chained.parent.id)


def test_a_repeat_while_the_first_is_under_way_is_not_published(spine: Spine) -> None:
    task, effect, gate = spine.tasks["waiting.keyed"], some(), some()
    first = task.delay(effect, gate).id
    eventually(lambda: spine.runs(first))
    repeat = task.delay(effect).id
    assert revoked_as(spine, repeat).startswith(f"duplicate: of {first}")
    spine.open(gate)
    spine.done(first)
    assert not spine.runs(repeat)


def test_one_that_waits_gets_the_result_of_the_first(spine: Spine) -> None:
    task, effect, gate = spine.tasks["keyed_that_waits"], some(), some()
    first = task.delay(effect, gate).id
    eventually(lambda: spine.runs(first))
    # With a link, so that it is published all the same and the guard decides.
    repeat = task.apply_async((effect,), link=spine.tasks["waiting.note"].s()).id
    eventually(lambda: spine.meta(repeat)["status"] == "HELD")
    assert spine.sw.store.holds.find([repeat])[repeat].reason.endswith("is under way")
    spine.open(gate)
    spine.done(first, repeat)
    assert spine.meta(repeat)["result"] == f"{effect} by {first}"
    assert not spine.runs(repeat)


def test_a_success_that_is_no_longer_fresh_does_not_count(spine: Spine) -> None:
    task, effect = spine.tasks["keyed_while_fresh"], some()
    first = task.delay(effect).id
    spine.done(first)
    spine.done(again := task.delay(effect).id)
    assert not spine.runs(again)


def test_a_job_that_expired_gives_its_key_back(spine: Spine) -> None:
    effect = some()
    late = spine.behind.app.tasks["waiting.keyed"].apply_async((effect,), headers=spine.late_header()).id
    assert revoked_as(spine, late) == "expired: late"
    again = spine.tasks["waiting.keyed"].delay(effect).id
    spine.done(again)
    assert len(spine.runs(again)) == 1


def test_two_copies_of_one_job_have_one_body(spine: Spine) -> None:
    task, effect, gate = spine.tasks["waiting.keyed"], some(), some()
    job = task.delay(effect, gate).id
    eventually(lambda: spine.runs(job))
    task.apply_async((effect, gate), task_id=job)
    eventually(lambda: spine.sw.store.holds.find([job]))
    spine.open(gate)
    spine.done(job)
    eventually(lambda: not spine.sw.store.holds.find([job]))
    assert len(spine.runs(job)) == 1


@lanes
def test_bodies_under_one_lease_run_one_after_another_each_with_a_higher_fence(spine: Spine, lane: str) -> None:
    task, account, gate = spine.tasks[f"{lane}.leased"], some(), some()
    jobs = [task.delay(account, gate).id for _ in range(3)]
    eventually(lambda: sum(spine.meta(job)["status"] == "HELD" for job in jobs) == 2)
    spine.open(gate)
    spine.done(*jobs)
    told = [json.loads(line) for line in spine.file(f"lease-{account}").read_text().splitlines()]
    assert [one["event"] for one in told] == ["begins", "ends"] * 3
    fences = [one["fence"] for one in told]
    assert fences == sorted(fences)
    assert len(set(fences)) == 3
    assert {len(spine.runs(job)) for job in jobs} == {1}


def test_a_lease_that_is_taken_can_make_a_job_a_duplicate(spine: Spine) -> None:
    task, account, gate = spine.tasks["leased_or_not"], some(), some()
    first = task.delay(account, gate).id
    eventually(lambda: spine.runs(first))
    second = task.delay(account).id
    assert revoked_as(spine, second).startswith(f"duplicate: of {first}")
    spine.open(gate)
    spine.done(first)


def test_a_lease_can_be_taken_over(spine: Spine) -> None:
    task, account, gate = spine.tasks["replaces"], some(), some()
    first = task.delay(account, gate).id
    eventually(lambda: spine.runs(first))
    second = task.delay(account).id
    spine.done(second)
    spine.open(gate)
    spine.done(first)
    assert spine.meta(second)["result"] > spine.meta(first)["result"]


def test_poison_is_started_three_times_then_buried_and_the_next_job_runs(spine: Spine) -> None:
    job = spine.tasks["kills_itself"].delay().id
    meta = spine.ended(job)
    assert (meta["status"], type(meta["result"]).__name__) == ("FAILURE", "PoisonedJob")
    assert len(spine.runs(job)) == 3
    letter = spine.sw.store.dead_letters.get(job)
    assert letter is not None
    assert (letter.state, letter.cause, letter.attempts, letter.tries) == (JobState.DEAD, "poison", 3, 1)
    assert (letter.task, letter.lane) == ("kills_itself", "heavy")
    spine.done(spine.tasks["heavy.note"].delay(1).id)
    assert len(spine.runs(job)) == 3


def test_poison_in_a_chord_ends_the_chord(spine: Spine) -> None:
    note = spine.tasks["heavy.note"]
    ended: Any = chord([note.si(1), spine.tasks["kills_itself"].si()])(note.si(2))
    assert spine.ended(ended.id)["status"] == "FAILURE"
    poison = ended.parent.children[1].id
    assert len(spine.runs(poison)) == 3
    assert spine.sw.store.dead_letters.get(poison) is not None


def test_a_body_that_dies_once_runs_again_and_is_no_dead_letter(spine: Spine) -> None:
    job = spine.tasks["kills_itself"].delay(times=1).id
    spine.done(job)
    assert len(spine.runs(job)) == 2
    assert spine.sw.store.dead_letters.get(job) is None


def test_what_may_pass_is_tried_again_by_policy_and_what_cannot_is_not(spine: Spine) -> None:
    task = spine.tasks["fails_by_policy"]
    passes, never, mistake = task.delay("peer", 2).id, task.delay("peer", 9).id, task.delay("mistake", 1).id
    spine.done(passes)
    assert spine.meta(passes)["result"] == 3
    assert [spine.ended(job)["status"] for job in (never, mistake)] == ["FAILURE"] * 2
    assert [len(spine.runs(job)) for job in (passes, never, mistake)] == [3, 3, 1]
    eventually(lambda: spine.sw.store.dead_letters.get(never))
    eventually(lambda: spine.sw.store.dead_letters.get(mistake))
    letters = [spine.sw.store.dead_letters.get(job) for job in (never, mistake)]
    told = [(one.state, one.cause, one.tries, "as it was asked to" in one.traceback) for one in letters if one]
    assert told == [
        (JobState.FAILED, "ConnectionResetError", 3, True),
        (JobState.FAILED, "ArithmeticError", 1, True),
    ]
    assert spine.sw.store.dead_letters.get(passes) is None
    found = spine.sw.store.dead_letters.list(LetterFilter(task="fails_by_policy"), limit=10)
    assert {one.job for one in found} == {never, mistake}


def test_a_retry_that_is_due_later_waits_in_the_store_and_not_with_the_broker(spine: Spine) -> None:
    job = spine.tasks["retry_later"].delay(2.0).id
    held = eventually(lambda: spine.sw.store.holds.find([job]))[job]
    assert (held.lane, held.tries, held.message.headers["eta"]) == ("waiting", 1, None)
    spine.done(job)
    first, second = spine.runs(job)
    assert first["mark"]["published_at"] < second["mark"]["published_at"]
    assert not spine.sw.store.holds.find([job])

"""Bodies that run longer than anybody expects, and holders that stand still or die."""

import json
import signal
from contextlib import ExitStack

import psutil  # type: ignore[import-untyped]
from tests.integration.cases.ward import Ward, lanes, pairs
from tests.integration.celery.spine import eventually

from slackwater.core.job import JobState

RERUNS_WITHIN_S = 90
FOUND_WITHIN_S = 45
"""Three times what is promised of a worker that stands still: on RabbitMQ three heartbeats of the least, 5 s."""


def tree(pid: int) -> list[psutil.Process]:
    first = psutil.Process(pid)
    return [first, *first.children(recursive=True)]


@lanes
def test_a_body_that_outlasts_every_time_to_live_runs_once(ward: Ward, lane: str) -> None:
    """Twelve seconds, with leases, presence and everything else living for four."""
    with ward.worker("one", lane=lane) as one, ward.worker("two", lane=lane) as two:
        jobs = [ward.tasks[f"{lane}.{name}"].delay(*args).id for name, args in RUNS]
        assert {ward.holder(job, one, two) for job in jobs} == {one, two}
        until = ward.sw.clock.run() + 3 * ward.sw.settings.presence_lives_for
        eventually(lambda: ward.sw.clock.run() > until)
        ward.open("gate")
        ward.done(*jobs)
    assert [len(ward.runs(job)) for job in jobs] == [1, 1]
    assert [job for job, _ in ward.committed()] == [jobs[1]]


RUNS = (("wait_at_gate", ("gate",)), ("book", ("7", "gate")))


@lanes
def test_a_duplicate_that_was_seen_while_the_holder_lived_does_not_cost_the_job(ward: Ward, lane: str) -> None:
    with ExitStack() as both:
        workers = [both.enter_context(ward.worker(name, lane=lane)) for name in ("one", "two")]
        job = ward.tasks[f"{lane}.book"].delay("7", "gate").id
        holder = ward.holder(job, *workers)
        # A second message of the same job, as a broker makes one that takes a long body for a dead one.
        ward.tasks[f"{lane}.book"].apply_async(("7", "gate"), task_id=job)
        eventually(lambda: ward.sw.store.holds.find([job]))
        assert len(ward.runs(job)) == 1
        for each in tree(holder.pid):
            each.kill()
        eventually(lambda: len(ward.runs(job)) == 2, within_s=RERUNS_WITHIN_S)
        ward.open("gate")
        ward.done(job)
        eventually(lambda: not ward.sw.store.holds.find([job]))
    assert [each for each, _ in ward.committed()] == [job]
    assert len(ward.runs(job)) == 2


@lanes
def test_a_holder_that_stood_still_past_its_lease_is_fenced_out(ward: Ward, lane: str) -> None:
    with ward.worker("one", lane=lane) as one, ward.worker("two", lane=lane) as two:
        job = ward.tasks[f"{lane}.book"].delay("7", "gate").id
        holder = ward.holder(job, one, two)
        stopped = tree(holder.pid)
        for each in stopped:
            each.send_signal(signal.SIGSTOP)
        try:
            eventually(lambda: len(ward.runs(job)) == 2, within_s=FOUND_WITHIN_S)
        finally:
            for each in stopped:
                each.send_signal(signal.SIGCONT)
        ward.open("gate")
        refused = eventually(lambda: ward.file(f"{job}.refused").exists() and ward.file(f"{job}.refused").read_text())
        assert json.loads(refused)["error"] == "StaleFence"
        ward.done(job)
        eventually(lambda: ward.sw.store.runs.runs([job])[job].state is JobState.DONE)
    first, second = ward.runs(job)
    assert first["pid"] != second["pid"]
    assert [each for each, _ in ward.committed()] == [job]


@pairs
def test_a_body_of_one_attempt_that_is_fenced_out_runs_again_to_its_end(ward: Ward, lane: str) -> None:
    with ward.worker("one", lane=lane, slots=2):
        replaced = ward.tasks[f"{lane}.book_once"].delay("7", "first").id
        eventually(lambda: ward.runs(replaced))
        replaces = ward.tasks[f"{lane}.book_once"].delay("7", "second").id
        eventually(lambda: ward.runs(replaces))
        ward.open("first")
        held = eventually(lambda: ward.sw.store.holds.find([replaced]), otherwise=lambda: ward.said("one"))
        assert held[replaced].waits_for == f"once-{lane}:7"
        ward.open("second")
        ward.done(replaced, replaces)
    assert [job for job, _ in ward.committed()] == [replaces, replaced]
    assert [len(ward.runs(job)) for job in (replaced, replaces)] == [2, 1]
    assert ward.sw.store.dead_letters.get(replaced) is None

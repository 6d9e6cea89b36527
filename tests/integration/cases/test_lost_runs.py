"""Bodies that died with the last copy of their message: the store has it, and the sweeper starts it again."""

from contextlib import ExitStack

from tests.integration.cases.losing import lose_what_was_delivered, sweeping
from tests.integration.cases.ward import Ward, other_pairs, pairs
from tests.integration.celery.spine import eventually

from slackwater.cli.sweepers import lost_runs_of
from slackwater.core.job import JobState

STARTS_WITHIN_S = 45
"""Three times the lease's life, the span of nothing returning, the amnesty of the sweeper and the feeder's turn."""


def run_and_die(ward: Ward, task: str, *args: str, lose: bool = True) -> str:
    """Start a job's body in a worker, and kill that; return the job's id."""
    lane = task.partition(".")[0]
    with ExitStack() as first:
        one = first.enter_context(ward.worker("one", lane=lane))
        job = ward.tasks[task].delay(*args).id
        eventually(lambda: ward.runs(job))
        eventually(lambda: ward.sw.store.runs.under_way([job]))
        one.kill()
        one.wait()
        if lose:
            lose_what_was_delivered(ward, lane)
    return str(job)


@other_pairs
def test_a_run_whose_message_went_with_its_worker_starts_again_once(ward: Ward, lane: str) -> None:
    job = run_and_die(ward, f"{lane}.book", "7", "gate")
    with ward.worker("two", lane=lane), sweeping(lost_runs_of(ward.sw)) as swept:
        eventually(lambda: len(ward.runs(job)) == 2, within_s=STARTS_WITHIN_S, otherwise=lambda: str(swept.rounds[-3:]))
        ward.open("gate")
        ward.done(job)
    assert [one.recovered_count for one in swept.rounds if one.found_count] == [1]
    assert [each for each, _ in ward.committed()] == [job]
    assert len(ward.runs(job)) == 2
    run = ward.sw.store.runs.runs([job])[job]
    assert (run.state, run.attempts) == (JobState.DONE, 2)
    assert not ward.sw.store.runs.under_way([job])


@pairs
def test_one_whose_attempts_are_spent_is_buried_whole_and_who_waited_for_its_key_goes_on(ward: Ward, lane: str) -> None:
    job = run_and_die(ward, f"{lane}.keyed_once", "7", "gate")
    # With a link, so that it is published though the key is taken.
    after = ward.tasks[f"{lane}.keyed_once"].apply_async(("7",), link=ward.tasks[f"{lane}.note"].s()).id
    with ward.worker("two", lane=lane), sweeping(lost_runs_of(ward.sw)):
        ward.done(after)
        meta = ward.ended(job)
    assert (meta["status"], type(meta["result"]).__name__) == ("FAILURE", "PoisonedJob")
    letter = ward.sw.store.dead_letters.get(job)
    assert letter is not None
    assert (letter.state, letter.cause, letter.attempts) == (JobState.DEAD, "poison", 1)
    assert letter.message is not None
    assert len(ward.runs(job)) == 1
    assert ward.sw.store.runs.runs([job])[job].state is JobState.DEAD


@other_pairs
def test_what_comes_back_by_itself_is_none_of_its_business(ward: Ward, lane: str) -> None:
    job = run_and_die(ward, f"{lane}.book", "7", "gate", lose=False)
    with ward.worker("two", lane=lane), sweeping(lost_runs_of(ward.sw)) as swept:
        eventually(lambda: len(ward.runs(job)) == 2, within_s=STARTS_WITHIN_S)
        ward.open("gate")
        ward.done(job)
    assert swept.found == 0

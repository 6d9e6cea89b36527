from __future__ import annotations

from collections.abc import Mapping

import pytest

from slackwater.core.job import JobState
from slackwater.core.occurrence import OccurrenceState, Verdict, judge, sources

QUEUED, RUNNING = OccurrenceState.QUEUED, OccurrenceState.RUNNING


def test_due_queued_and_running_are_not_final() -> None:
    assert {state.value for state in OccurrenceState if not state.final} == {"due", "queued", "running"}


def test_an_occurrence_goes_onward_only() -> None:
    due, queued, running = OccurrenceState.DUE, QUEUED, RUNNING

    assert sources(due) == {due}
    assert sources(queued) == {due, queued}
    assert sources(running) == {due, queued, running}
    assert sources(OccurrenceState.DONE) == {due, queued, running, OccurrenceState.DONE}


@pytest.mark.parametrize("parent", [None, JobState.HELD, JobState.QUEUED])
def test_before_its_parent_starts_an_occurrence_stays_as_it_is(parent: JobState | None) -> None:
    assert judge(parent, {JobState.DONE: 3}, now=QUEUED) == Verdict(state=QUEUED)


def test_a_running_parent_makes_it_running() -> None:
    assert judge(JobState.RUNNING, {}, now=QUEUED) == Verdict(state=RUNNING)


@pytest.mark.parametrize("open_state", [JobState.HELD, JobState.QUEUED, JobState.RUNNING])
def test_it_runs_until_the_last_of_its_jobs_has_ended(open_state: JobState) -> None:
    assert judge(JobState.DONE, {JobState.DONE: 99, open_state: 1}, now=RUNNING) == Verdict(state=RUNNING)


def test_a_parent_that_failed_with_jobs_open_is_judged_when_they_have_ended() -> None:
    assert judge(JobState.FAILED, {JobState.QUEUED: 1}, now=RUNNING).state is RUNNING
    assert judge(JobState.FAILED, {JobState.DONE: 1}, now=RUNNING) == Verdict(
        state=OccurrenceState.FAILED, reason="its parent job ended as failed"
    )


@pytest.mark.parametrize(
    ("jobs", "state", "reason"),
    [
        ({}, OccurrenceState.DONE, None),
        ({JobState.DONE: 5, JobState.DUPLICATE: 1}, OccurrenceState.DONE, None),
        ({JobState.DONE: 5, JobState.FAILED: 1, JobState.DEAD: 2}, OccurrenceState.FAILED, "3 of 8 jobs failed"),
        ({JobState.DONE: 5, JobState.EXPIRED: 1, JobState.REVOKED: 1}, OccurrenceState.EXPIRED, "2 of 7 jobs expired"),
        ({JobState.FAILED: 1, JobState.EXPIRED: 9}, OccurrenceState.FAILED, "1 of 10 jobs failed"),
    ],
)
def test_its_end_is_the_worst_of_its_jobs_with_their_count(
    jobs: Mapping[JobState, int], state: OccurrenceState, reason: str | None
) -> None:
    assert judge(JobState.DONE, jobs, now=RUNNING) == Verdict(state=state, reason=reason)


@pytest.mark.parametrize("parent", [JobState.EXPIRED, JobState.REVOKED])
def test_a_parent_that_never_ran_ends_it_as_expired(parent: JobState) -> None:
    verdict = judge(parent, {}, now=QUEUED)

    assert verdict == Verdict(state=OccurrenceState.EXPIRED, reason=f"its parent job ended as {parent}")

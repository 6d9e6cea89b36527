from collections import Counter
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightshift.report.ledger import place, settle
from nightshift.report.night import Claim, Claimant, Demand, DemandSource
from slackwater import JobState

AT = datetime(2026, 11, 29, 20, 0, tzinfo=UTC)
JOBS = st.sampled_from([f"job-{number}" for number in range(8)])
CLAIMS = st.builds(Claim, job=JOBS, state=st.sampled_from(list(JobState)), claimant=st.sampled_from(list(Claimant)))


def demand(job: str) -> Demand:
    return Demand(job=job, task="sync", lane="banks", source=DemandSource.PUBLISH, at=AT)


def claim(state: JobState, claimant: Claimant, detail: str = "") -> Claim:
    return Claim(job="a", state=state, claimant=claimant, detail=detail)


@given(jobs=st.lists(JOBS), claims=st.lists(CLAIMS))
def test_submitted_is_the_sum_of_all_states_and_lost(jobs: list[str], claims: list[Claim]) -> None:
    ledger = settle([demand(job) for job in jobs], claims)
    assert ledger.submitted == len(set(jobs)) == sum(ledger.counts.values()) + len(ledger.lost)
    assert set(ledger.counts) == set(JobState)
    assert ledger.counts == {state: Counter(ledger.places.values())[state] for state in JobState}


@given(jobs=st.lists(JOBS), claims=st.lists(CLAIMS))
def test_each_job_is_in_one_state_that_somebody_claims_or_it_is_lost(jobs: list[str], claims: list[Claim]) -> None:
    ledger = settle([demand(job) for job in jobs], claims)
    lost = {one.demand.job for one in ledger.lost}
    assert lost | set(ledger.places) == set(jobs)
    assert not lost & set(ledger.places)
    for job, state in ledger.places.items():
        told = {
            one.claimant if state is JobState.QUEUED or state is JobState.HELD else one.state
            for one in claims
            if one.job == job
        }
        assert told & {state, Claimant.QUEUE, Claimant.UNACKNOWLEDGED, Claimant.HOLDS}


@given(claims=st.lists(CLAIMS))
def test_the_order_of_claims_does_not_matter(claims: list[Claim]) -> None:
    demands = [demand(f"job-{number}") for number in range(8)]
    assert settle(demands, claims).places == settle(demands, reversed(claims)).places


@pytest.mark.parametrize(
    ("claims", "state"),
    [
        ([claim(JobState.DONE, Claimant.RESULTS), claim(JobState.QUEUED, Claimant.QUEUE)], JobState.DONE),
        ([claim(JobState.EXPIRED, Claimant.ENDINGS), claim(JobState.HELD, Claimant.HOLDS)], JobState.EXPIRED),
        (
            [claim(JobState.RUNNING, Claimant.RESULTS), claim(JobState.QUEUED, Claimant.UNACKNOWLEDGED)],
            JobState.RUNNING,
        ),
        ([claim(JobState.QUEUED, Claimant.UNACKNOWLEDGED)], JobState.QUEUED),
        ([claim(JobState.RUNNING, Claimant.RESULTS), claim(JobState.QUEUED, Claimant.QUEUE)], JobState.QUEUED),
        ([claim(JobState.HELD, Claimant.HOLDS), claim(JobState.QUEUED, Claimant.QUEUE)], JobState.QUEUED),
        ([claim(JobState.HELD, Claimant.HOLDS)], JobState.HELD),
        ([claim(JobState.RUNNING, Claimant.RESULTS)], None),
        ([], None),
    ],
)
def test_where_a_job_is_follows_the_written_order(claims: list[Claim], state: JobState | None) -> None:
    assert place(claims).state is state


def test_a_started_job_without_a_message_is_lost_and_the_reason_says_so() -> None:
    (lost,) = settle([demand("a")], [claim(JobState.RUNNING, Claimant.RESULTS)]).lost
    assert lost.reason == "result backend says running, but there is no message of it in the broker"


def test_celerys_coarser_word_beside_ours_is_no_contradiction() -> None:
    ledger = settle(
        [demand("a")], [claim(JobState.EXPIRED, Claimant.ENDINGS), claim(JobState.REVOKED, Claimant.RESULTS)]
    )
    assert ledger.places == {"a": JobState.EXPIRED}
    assert not ledger.contradictions


def test_two_endings_are_a_contradiction_and_the_worse_one_counts() -> None:
    ledger = settle([demand("a")], [claim(JobState.DONE, Claimant.RESULTS), claim(JobState.EXPIRED, Claimant.ENDINGS)])
    assert ledger.places == {"a": JobState.EXPIRED}
    assert [one.demand.job for one in ledger.contradictions] == ["a"]


def test_a_job_that_nobody_demanded_is_told_and_not_counted() -> None:
    ledger = settle([], [claim(JobState.DONE, Claimant.RESULTS)])
    assert (ledger.submitted, ledger.undemanded) == (0, ("a",))


def duplicate(of: str | None) -> list[Claim]:
    ended = Claim(job="a", state=JobState.DUPLICATE, claimant=Claimant.ENDINGS, of=of)
    return [ended, claim(JobState.DONE, Claimant.RESULTS)]


def test_a_duplicate_that_got_the_others_result_is_a_duplicate_and_names_the_other() -> None:
    other = Claim(job="b", state=JobState.DONE, claimant=Claimant.RESULTS)
    ledger = settle([demand("a")], [*duplicate("b"), other])
    assert (ledger.places, ledger.contradictions) == ({"a": JobState.DUPLICATE}, ())
    assert [(one.job, one.of, one.is_placed) for one in ledger.duplicates] == [("a", "b", True)]
    assert ledger.undemanded == (), "the other one is told of by the first"


@pytest.mark.parametrize("of", ["b", "a", None])
def test_a_duplicate_of_what_is_nowhere_or_of_itself_has_no_work_behind_it(of: str | None) -> None:
    (found,) = settle([demand("a")], duplicate(of)).duplicates
    assert not found.is_placed


def test_a_duplicate_that_failed_all_the_same_is_a_contradiction() -> None:
    ledger = settle([demand("a")], [*duplicate("b"), claim(JobState.FAILED, Claimant.DEAD_LETTERS)])
    assert len(ledger.contradictions) == 1

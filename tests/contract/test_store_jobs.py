from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier
from uuid import UUID, uuid4

import pytest

from slackwater.core.job import JobState
from slackwater.core.occurrence import Occurrence
from slackwater.ports import Ending, Store

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


def admitted(store: Store, entry: str = "sync") -> UUID:
    one = Occurrence(id=uuid4(), entry=entry, task=entry, due_at=NOW, start_by=NOW)
    store.occurrences.admit([one], watermarks={})
    return one.id


def counted(store: Store, occurrence: UUID) -> dict[JobState, int]:
    found = store.occurrences.get(occurrence)
    assert found is not None
    return dict(found.jobs)


def ending(job: str, *, reason: str = "late", lane: str | None = "network") -> Ending:
    return Ending(job=job, state=JobState.EXPIRED, reason=reason, task="sync", lane=lane, at=NOW)


def test_jobs_added_twice_are_one_and_keep_their_state(store: Store) -> None:
    parent = admitted(store)
    store.fan_outs.add(parent, ["a", "b", "a"])
    store.fan_outs.settle({"a": JobState.DONE}, at=NOW)

    store.fan_outs.add(parent, ["a", "b", "c"])

    assert counted(store, parent) == {JobState.DONE: 1, JobState.QUEUED: 2}


def test_a_job_stays_with_the_occurrence_that_it_was_first_added_to(store: Store) -> None:
    first, second = admitted(store, "first"), admitted(store, "second")
    store.fan_outs.add(first, ["a"])
    store.fan_outs.add(second, ["a", "b"])

    assert (counted(store, first), counted(store, second)) == ({JobState.QUEUED: 1}, {JobState.QUEUED: 1})


def test_unsettled_jobs_are_walked_in_order_page_by_page(store: Store) -> None:
    parent, other = admitted(store), admitted(store, "other")
    ids = ["b", "B", "a-1", "a1", "é", "_", "c", "d"]
    store.fan_outs.add(parent, ids)
    store.fan_outs.add(other, ["a2"])
    store.fan_outs.settle({"c": JobState.DONE, "d": JobState.RUNNING}, at=NOW)

    pages, after = [], ""
    while page := store.fan_outs.unsettled(parent, after=after, limit=3):
        pages.append(list(page))
        after = page[-1]

    walked = sorted(set(ids) - {"c"})
    assert pages == [walked[0:3], walked[3:6], walked[6:9]]


@pytest.mark.parametrize("final", [state for state in JobState if state.final])
def test_a_final_state_of_a_job_is_never_changed(store: Store, final: JobState) -> None:
    parent = admitted(store)
    store.fan_outs.add(parent, ["a"])
    store.fan_outs.settle({"a": final}, at=NOW)

    for state in JobState:
        store.fan_outs.settle({"a": state}, at=NOW)

    assert counted(store, parent) == {final: 1}


def test_settling_an_unknown_job_records_nothing(store: Store) -> None:
    parent = admitted(store)
    store.fan_outs.settle({"never added": JobState.DONE}, at=NOW)

    store.fan_outs.add(parent, ["never added"])

    assert counted(store, parent) == {JobState.QUEUED: 1}


def test_two_who_settle_the_same_jobs_at_once_both_get_through(store: Store) -> None:
    parent = admitted(store)
    ids = [f"job-{number:04}" for number in range(400)]
    store.fan_outs.add(parent, ids)
    start = Barrier(2)

    def settle(jobs: list[str]) -> None:
        for state in (JobState.RUNNING, JobState.RUNNING, JobState.DONE):
            start.wait(timeout=20)
            store.fan_outs.settle(dict.fromkeys(jobs, state), at=NOW)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(settle, [ids, ids[::-1]]))

    assert counted(store, parent) == {JobState.DONE: 400}


def test_a_fan_out_of_thousands_is_added_and_settled_whole(store: Store) -> None:
    parent = admitted(store)
    ids = [str(uuid4()) for _ in range(5000)]

    store.fan_outs.add(parent, ids)
    store.fan_outs.settle(dict.fromkeys(ids[:3000], JobState.FAILED), at=NOW)

    assert counted(store, parent) == {JobState.FAILED: 3000, JobState.QUEUED: 2000}
    assert store.fan_outs.unsettled(parent, after="", limit=5000) == sorted(ids[3000:])


def test_empty_batches_change_nothing(store: Store) -> None:
    parent = admitted(store)
    store.fan_outs.add(parent, [])
    store.fan_outs.settle({}, at=NOW)
    store.endings.record([])

    assert counted(store, parent) == {}
    assert store.fan_outs.unsettled(parent, after="", limit=10) == []
    assert store.endings.find([]) == {}


def test_the_first_ending_of_a_job_stays(store: Store) -> None:
    store.endings.record([ending("a", reason="first"), ending("a", reason="within the batch")])
    store.endings.record([ending("a", reason="second"), ending("b", lane=None)])

    assert store.endings.find(["a", "b"]) == {"a": ending("a", reason="first"), "b": ending("b", lane=None)}


def test_endings_are_found_for_those_jobs_alone_that_have_one(store: Store) -> None:
    store.endings.record([ending("a"), ending("b")])

    found = store.endings.find(job for job in ("b", "unknown"))

    assert list(found) == ["b"]
    assert found["b"].at.utcoffset() == timedelta(0)

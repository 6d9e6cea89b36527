"""Keys that are announced at dispatch, and who does the work then."""

from __future__ import annotations

from tests.contract.deliveries import MINUTE, NOW, OTHER, announce, begin, end, keyed

from slackwater.core.admission import Admit, Key, KeyRule, Resolve
from slackwater.core.job import JobState
from slackwater.ports import Store


def test_a_key_announced_is_pending_for_all_others_and_its_own_for_its_job(store: Store) -> None:
    assert announce(store, "a", "b", "a") == ["a", "a", "a"]

    assert announce(store, "c") == ["a"]
    assert store.runs.key("run:1") == Key(name="run:1", job="a", state=JobState.QUEUED, announced_at=NOW)


def test_a_key_that_was_announced_long_ago_and_never_began_does_not_block(store: Store) -> None:
    announce(store, "a")

    assert announce(store, "b", at=NOW + 2 * MINUTE) == ["b"]


def test_a_key_under_way_or_done_is_announced_to_nobody_else(store: Store) -> None:
    one = keyed("a")
    begun = begin(store, one)
    assert announce(store, "b", at=NOW + 9 * MINUTE) == ["a"]

    store.runs.finish([end(one, begun)])
    assert announce(store, "b", at=NOW + 9 * MINUTE) == ["a"]
    assert announce(store, "b", key=KeyRule(name="run:1", fresh_since=NOW + MINUTE)) == ["b"]


def test_a_job_that_begins_keeps_when_its_key_was_announced(store: Store) -> None:
    announce(store, "a")
    begin(store, keyed("a"))
    key = store.runs.key("run:1")

    assert key is not None
    assert (key.job, key.state, key.announced_at) == ("a", JobState.RUNNING, NOW)


def test_who_begins_first_with_an_announced_key_does_the_work(store: Store) -> None:
    announce(store, "a")

    assert isinstance(begin(store, keyed("b")).admission, Admit)
    admission = begin(store, keyed("a", boot=OTHER)).admission
    assert isinstance(admission, Resolve)
    assert admission.to == "b"

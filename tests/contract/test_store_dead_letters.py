from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slackwater.core.dead_letter import DeadLetter, Pause
from slackwater.core.job import JobState
from slackwater.core.message import Message
from slackwater.core.sweep import Sweep
from slackwater.ports import Store
from slackwater.ports.recovery import LetterFilter

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
EVERY = LetterFilter(open_only=False)
PAUSE = Pause(lane="network", cause="ValueError", reason="60 of 60", since=NOW, until=NOW + MINUTE)


def letter(job: str, **given: Any) -> DeadLetter:
    message = Message(
        job=job, task="sync", queue="network", headers={"z": 1, "a": [2]}, body=b"\x00\xff",
        content_type="application/json", content_encoding="utf-8", properties={"priority": 9},
    )  # fmt: skip
    values: dict[str, Any] = {
        "job": job, "task": "sync", "lane": "network", "state": JobState.FAILED, "cause": "ValueError",
        "reason": "it is wrong", "attempts": 1, "tries": 4, "buried_at": NOW, "message": message, "tenant": "t",
        "traceback": "Traceback ...", "published_at": NOW - MINUTE, "replay_of": "earlier",
    }  # fmt: skip
    return DeadLetter(**values | given)


def bury(store: Store, *letters: DeadLetter, full_per_cause: int = 100) -> None:
    store.dead_letters.bury(letters, full_per_cause=full_per_cause)


def listed(store: Store, which: LetterFilter = LetterFilter(), limit: int = 99) -> list[str]:  # noqa: B008 - frozen
    return [one.job for one in store.dead_letters.list(which, limit=limit)]


def whole(store: Store) -> list[str]:
    return sorted(one.job for one in store.dead_letters.list(EVERY, limit=99) if one.message is not None)


def test_a_letter_comes_back_as_it_was(store: Store) -> None:
    bare = letter("bare", lane=None, tenant=None, published_at=None, replay_of=None, message=None, state=JobState.DEAD)
    bury(store, letter("a"), bare)

    found = store.dead_letters.get("a")
    assert found == letter("a")
    assert found.message is not None
    assert list(found.message.headers) == ["z", "a"]
    assert store.dead_letters.get("bare") == bare
    assert store.dead_letters.get("nobody") is None


def test_the_first_letter_of_a_job_stays(store: Store) -> None:
    bury(store, letter("a", reason="first"), letter("a", reason="second"))
    bury(store, letter("a", reason="third"))
    bury(store)

    assert [one.reason for one in store.dead_letters.list(EVERY, limit=9)] == ["first"]


def test_an_error_that_no_database_keeps_as_text_is_made_legible(store: Store) -> None:
    bury(store, letter("a", reason="\0", traceback="\udcff", cause="\0E"))

    found = store.dead_letters.get("a")
    assert found is not None
    assert (found.reason, found.traceback, found.cause) == (r"\x00", r"\udcff", r"\x00E")


def test_so_many_of_one_lane_and_cause_keep_their_message_and_the_next_their_facts(store: Store) -> None:
    bury(store, letter("z"), letter("y"), letter("x"), full_per_cause=2)
    bury(store, letter("w"), letter("v", cause="KeyError"), letter("u", lane=None), full_per_cause=2)

    assert whole(store) == ["u", "v", "y", "z"]
    assert store.dead_letters.get("w") == replace(letter("w"), message=None, traceback="")


def test_without_a_lane_the_limit_holds_too(store: Store) -> None:
    bury(store, letter("a", lane=None), full_per_cause=1)
    bury(store, letter("b", lane=None), full_per_cause=1)

    assert whole(store) == ["a"]


def test_letters_that_are_open_no_more_leave_room_for_whole_ones(store: Store) -> None:
    bury(store, letter("a"), letter("b"), full_per_cause=2)
    store.dead_letters.mark_replayed("a", as_job="a2")
    store.dead_letters.discard(["b"], at=NOW)

    bury(store, letter("c"), letter("d"), letter("e"), full_per_cause=2)

    assert whole(store) == ["a", "c", "d"]


def test_letters_are_listed_newest_first_and_at_most_so_many(store: Store) -> None:
    bury(store, *(letter(job, buried_at=NOW + number * SECOND) for number, job in enumerate("cab")), letter("0"))

    assert listed(store) == ["b", "a", "0", "c"]
    assert listed(store, limit=2) == ["b", "a"]


@pytest.mark.parametrize(
    ("which", "found"),
    [
        (LetterFilter(lane="compute"), ["b"]),
        (LetterFilter(task="audit"), ["c"]),
        (LetterFilter(cause="poison"), ["d"]),
        (LetterFilter(since=NOW + SECOND), ["e"]),
        (LetterFilter(lane="network", cause="ValueError", since=NOW), ["a", "c", "e"]),
    ],
)
def test_letters_are_found_by_what_is_asked_for(store: Store, which: LetterFilter, found: list[str]) -> None:
    bury(store, letter("a"), letter("b", lane="compute"), letter("c", task="audit"), letter("d", cause="poison"))
    bury(store, letter("e", buried_at=NOW + SECOND))

    assert sorted(listed(store, which)) == found


def test_a_replay_is_recorded_once_and_repeated_under_its_own_id_alone(store: Store) -> None:
    bury(store, letter("a"))

    assert store.dead_letters.mark_replayed("a", as_job="a2")
    assert not store.dead_letters.mark_replayed("a", as_job="a3")
    assert store.dead_letters.mark_replayed("a", as_job="a2")
    assert not store.dead_letters.mark_replayed("nobody", as_job="n2")
    assert listed(store) == []
    found = store.dead_letters.get("a")
    assert found is not None
    assert found.replayed_as == "a2"


def test_discarding_takes_out_of_sight_drops_the_message_and_counts_the_open_ones(store: Store) -> None:
    bury(store, letter("a"), letter("b"), letter("c"))
    store.dead_letters.mark_replayed("b", as_job="b2")

    assert store.dead_letters.discard(["a", "b", "nobody"], at=NOW) == 1
    assert store.dead_letters.discard(["a"], at=NOW) == 0
    assert store.dead_letters.discard([], at=NOW) == 0
    assert listed(store) == ["c"]
    assert store.dead_letters.get("a") == replace(letter("a"), message=None)
    assert not store.dead_letters.mark_replayed("a", as_job="a2")


def test_counts_are_by_lane_and_cause_since_an_instant(store: Store) -> None:
    bury(store, letter("old", buried_at=NOW - SECOND), letter("a"), letter("b"), letter("c", lane=None))
    store.dead_letters.discard(["a"], at=NOW)

    assert store.dead_letters.counts(since=NOW) == {("network", "ValueError"): 2, (None, "ValueError"): 1}


def test_pruning_deletes_those_buried_before_an_instant(store: Store) -> None:
    bury(store, letter("old", buried_at=NOW - SECOND), letter("a"))

    assert store.dead_letters.prune(before=NOW) == 1
    assert store.dead_letters.prune(before=NOW) == 0
    assert listed(store, EVERY) == ["a"]


def test_pausing_tells_which_lanes_were_not_paused_before(store: Store) -> None:
    assert store.dead_letters.pause([]) == []
    assert store.dead_letters.pause([PAUSE]) == [PAUSE]

    other = replace(PAUSE, lane="compute")
    assert store.dead_letters.pause([replace(PAUSE, reason="again"), other]) == [other]
    assert store.dead_letters.pauses() == [other, PAUSE]


def test_a_lane_that_is_paused_again_is_paused_until_the_later_instant(store: Store) -> None:
    for minutes in (1, 5, 2):
        store.dead_letters.pause([replace(PAUSE, until=NOW + minutes * MINUTE)])

    assert [one.until for one in store.dead_letters.pauses()] == [NOW + 5 * MINUTE]


def test_resuming_lets_a_lane_work_again(store: Store) -> None:
    store.dead_letters.pause([PAUSE])

    assert store.dead_letters.resume("network")
    assert not store.dead_letters.resume("network")
    assert store.dead_letters.pauses() == []
    assert store.dead_letters.pause([PAUSE]) == [PAUSE]


def test_each_sweepers_latest_round_is_kept_by_name(store: Store) -> None:
    first = Sweep(sweeper="dead workers", at=NOW, found_count=3, recovered_count=2, note="one left")
    later = Sweep(sweeper="dead workers", at=NOW + SECOND, error="store away \0")
    other = Sweep(sweeper="Stale", at=NOW)
    for one in (first, other, later, first):
        store.sweeps.record(one)

    assert store.sweeps.all() == [other, replace(later, error=r"store away \x00")]

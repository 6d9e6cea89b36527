from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from slackwater.core.admission import Ask, LeaseRule
from slackwater.core.message import Held, Message
from slackwater.errors import ConfigurationError
from slackwater.ports import Store

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
BOOT, OTHER = UUID(int=1), UUID(int=2)
HEADERS = {"task": "sync", "id": "x", "z": 1, "a": {"nested": [None, True, 1.5, "ü"]}, "\0": "\0", "lang": "py"}


def message(job: str, **given: Any) -> Message:
    values: dict[str, Any] = {
        "job": job, "task": "sync", "queue": "network", "headers": HEADERS, "body": b"\x00[[7], {}]\xff",
        "content_type": "application/json", "content_encoding": "utf-8",
        "properties": {"reply_to": "q", "priority": 3, "correlation_id": job},
    }  # fmt: skip
    return Message(**values | given)


def held(job: str, **given: Any) -> Held:
    values: dict[str, Any] = {
        "message": message(job), "lane": "network", "tries": 0, "not_before": NOW, "reason": "backoff", "held_at": NOW,
    }  # fmt: skip
    return Held(**values | given)


def claim(store: Store, at: datetime = NOW, *, boot: UUID = BOOT, **lanes: int) -> list[str]:
    claimed = store.holds.claim(lanes or {"network": 100}, boot=boot, now=at, claimed_for=MINUTE)
    return [one.job for one in claimed]


def jobs(found: Iterable[Held]) -> list[str]:
    return [one.job for one in found]


def take(store: Store, *names: str) -> None:
    rules = [LeaseRule(name=name, lives_for=MINUTE) for name in names]
    asks = [Ask(job=f"of {one.name}", tries=0, task="t", boot=BOOT, redelivered=False, lease=one) for one in rules]
    assert all(one.fence for one in store.runs.begin(asks))


def test_a_held_job_comes_back_as_it_was_with_its_headers_in_their_order(store: Store) -> None:
    one = held("a", waits_for="account:7", start_by=NOW + MINUTE, tries=2)
    store.holds.hold([one])

    found = store.holds.find(["a", "nobody"])
    assert found == {"a": one}
    assert list(found["a"].message.headers) == list(HEADERS)
    assert list(found["a"].message.properties) == ["reply_to", "priority", "correlation_id"]


def test_dates_and_identifiers_in_headers_come_back_as_such(store: Store) -> None:
    headers = {"eta": NOW, "root": uuid4()}
    store.holds.hold([held("a", message=message("a", headers=headers))])

    assert store.holds.find(["a"])["a"].message.headers == headers


def test_headers_that_cannot_be_kept_are_refused_naming_the_job(store: Store) -> None:
    with pytest.raises(ConfigurationError, match="job a: its headers cannot be kept as JSON"):
        store.holds.hold([held("a", message=message("a", headers={"x": float("nan")}))])
    assert store.holds.counts() == {}


def test_a_reason_with_characters_that_no_database_keeps_is_made_legible(store: Store) -> None:
    store.holds.hold([held("a", reason="zero \0 and half \udc80")])

    assert store.holds.find(["a"])["a"].reason == r"zero \x00 and half \udc80"


def test_a_later_try_replaces_a_held_job_and_the_same_or_an_earlier_does_not(store: Store) -> None:
    store.holds.hold([held("a", tries=1, reason="first")])
    store.holds.hold([held("a", tries=1, reason="same"), held("a", tries=0, reason="earlier")])
    assert store.holds.find(["a"])["a"].reason == "first"

    store.holds.hold([held("a", tries=2, reason="later"), held("a", tries=2, reason="twice")])
    assert store.holds.find(["a"])["a"].reason == "later"


def test_a_job_that_is_held_anew_while_it_is_claimed_outlives_its_claimers_removal(store: Store) -> None:
    store.holds.hold([held("a")])
    assert claim(store) == ["a"]

    store.holds.hold([held("a", reason="lease taken", not_before=NOW + SECOND)])
    store.holds.released(["a"], boot=BOOT)

    assert store.holds.find(["a"])["a"].reason == "lease taken"
    assert claim(store, NOW + SECOND, boot=OTHER) == ["a"]


def test_only_those_whose_time_has_come_are_claimed_oldest_first(store: Store) -> None:
    store.holds.hold([held("d", not_before=NOW + SECOND), held("c"), held("b"), held("a", held_at=NOW - MINUTE)])
    store.holds.hold([held("e", not_before=NOW - SECOND, held_at=NOW + MINUTE)])

    assert claim(store) == ["e", "a", "b", "c"]
    assert claim(store, NOW + SECOND) == ["d"]


def test_each_lane_gives_at_most_its_number(store: Store) -> None:
    store.holds.hold([held(f"n{number}", held_at=NOW + number * SECOND) for number in range(4)])
    store.holds.hold([held(f"c{number}", lane="compute") for number in range(4)] + [held("o", lane="other")])

    assert sorted(claim(store, network=2, compute=1, nothing=9)) == ["c0", "n0", "n1"]
    assert claim(store, network=0) == []
    assert claim(store, network=9) == ["n2", "n3"]


def test_both_kinds_of_waiting_share_a_lanes_number_oldest_first(store: Store) -> None:
    store.holds.hold([held("a", held_at=NOW, waits_for="x"), held("b", held_at=NOW + SECOND)])
    store.holds.hold([held("c", held_at=NOW + 2 * SECOND, waits_for="y"), held("d", held_at=NOW + 3 * SECOND)])

    assert claim(store, network=2) == ["a", "b"]
    assert claim(store, network=2) == ["c", "d"]


def test_a_claim_keeps_others_out_until_it_is_void(store: Store) -> None:
    store.holds.hold([held("a")])
    assert claim(store) == ["a"]

    assert claim(store, NOW + MINUTE - SECOND, boot=OTHER) == []
    assert claim(store, NOW + MINUTE, boot=OTHER) == ["a"]


def test_what_is_published_is_removed_by_its_claimer_alone(store: Store) -> None:
    store.holds.hold([held("a"), held("b")])
    claim(store)
    claim(store, NOW + MINUTE, boot=OTHER)

    store.holds.released(["a", "b"], boot=BOOT)
    assert store.holds.counts() == {"network": 2}
    store.holds.released(["a"], boot=OTHER)
    assert store.holds.find(["a", "b"]).keys() == {"b"}


def test_a_job_that_was_not_claimed_is_not_removed_as_published(store: Store) -> None:
    store.holds.hold([held("a")])
    store.holds.released(["a"], boot=BOOT)

    assert store.holds.counts() == {"network": 1}


def test_a_job_waits_until_its_lease_is_free(store: Store) -> None:
    take(store, "account:7")
    store.holds.hold([held("a", waits_for="account:7"), held("b", waits_for="account:8"), held("c")])

    assert claim(store) == ["b", "c"]
    store.runs.lapse_all(BOOT)
    assert claim(store) == ["a"]


def test_of_those_that_wait_for_one_lease_the_oldest_alone_is_claimed(store: Store) -> None:
    names = ["account:7", "account:7", "account:8", "account:8"]
    for number, name in enumerate(names):
        lane = "compute" if number == 1 else "network"
        store.holds.hold([held(f"{number}", waits_for=name, lane=lane, held_at=NOW - number * SECOND)])

    assert claim(store, network=9, compute=9) == ["3", "1"]


def test_dropped_jobs_are_returned_and_gone_claimed_or_not(store: Store) -> None:
    store.holds.hold([held("a"), held("b"), held("c")])
    claim(store, network=1)

    assert jobs(store.holds.drop(["b", "a", "nobody", "a"])) == ["a", "b"]
    assert store.holds.drop([]) == []
    assert store.holds.counts() == {"network": 1}


def test_late_ones_are_those_whose_start_by_has_passed(store: Store) -> None:
    store.holds.hold([held(f"{number}", start_by=NOW + number * SECOND) for number in range(4)] + [held("never")])

    assert jobs(store.holds.late(now=NOW + 2 * SECOND, limit=9)) == ["0", "1"]
    assert jobs(store.holds.late(now=NOW + MINUTE, limit=3)) == ["0", "1", "2"]
    assert store.holds.late(now=NOW, limit=9) == []


def test_counts_are_by_lane(store: Store) -> None:
    assert store.holds.counts() == {}
    store.holds.hold([held("a"), held("b"), held("c", lane="compute")])

    assert store.holds.counts() == {"network": 2, "compute": 1}


def test_changing_the_headers_that_were_given_changes_nothing_kept(store: Store) -> None:
    headers: dict[str, Any] = {"a": {"b": 1}}
    store.holds.hold([held("a", message=message("a", headers=headers))])
    headers["a"]["b"] = 2

    assert store.holds.find(["a"])["a"].message.headers == {"a": {"b": 1}}


def test_thousands_are_held_and_claimed_whole(store: Store) -> None:
    ids = [f"job-{number:05}" for number in range(3000)]
    store.holds.hold([held(job) for job in reversed(ids)])
    store.holds.hold([replace(held(job), tries=1) for job in ids[:10]])

    assert claim(store, network=2000) == ids[:2000]
    store.holds.released(ids[:2000], boot=BOOT)
    assert store.holds.counts() == {"network": 1000}

"""Bundles, the same in memory and in PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

from slackwater.core.bundle import Bundle, BundleState, Link, Member
from slackwater.ports import ClosedBundle, Store

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def chord(name: str = "c", *, at: datetime = NOON) -> Bundle:
    return Bundle(
        id=name,
        members=(
            Member(links=(Link(f"{name}1", "sync"), Link(f"{name}2", "sync"))),
            Member(links=(Link(f"{name}3"),), placed=False),
        ),
        body=Member(links=(Link(f"{name}-body", "report"),)),
        callback='{"task": "report"}',
        noted_at=at,
        start_by=at + MINUTE,
        kept_until=at + 2 * MINUTE,
    )


def group(name: str = "g", *, at: datetime = NOON) -> Bundle:
    return Bundle(id=name, members=(Member(links=(Link("a", "sync"),)),), noted_at=at)


def test_what_was_noted_is_found_as_it_was_oldest_first(store: Store) -> None:
    store.bundles.note([chord(at=NOON + MINUTE), group()])
    store.bundles.note([])
    assert list(store.bundles.open()) == ["g", "c"]
    assert list(store.bundles.find(["c", "g", "unknown"])) == [group(), chord(at=NOON + MINUTE)]
    assert list(store.bundles.find([])) == []


def test_one_that_was_noted_before_stays_as_it_was(store: Store) -> None:
    store.bundles.note([group()])
    store.bundles.note([replace(group(), noted_at=NOON + MINUTE)])
    assert list(store.bundles.find(["g"])) == [group()]


def test_one_that_is_not_whole_yet_is_noted_anew_and_its_blame_stays(store: Store) -> None:
    begun = replace(chord(), whole=False, publisher="parent", start_by=None)
    store.bundles.note([begun, replace(group(), whole=False)])
    assert list(store.bundles.find(["c"])) == [begun]
    going_on = replace(begun, noted_at=NOON + MINUTE)
    store.bundles.note([going_on])
    assert list(store.bundles.find(["c"])) == [going_on]
    store.bundles.blame("c", "a job is missing")
    store.bundles.note([chord(at=NOON + 2 * MINUTE), group()])
    assert list(store.bundles.find(["c"])) == [replace(chord(at=NOON + 2 * MINUTE), blame="a job is missing")]
    store.bundles.note([begun, replace(begun, id="g")])
    assert list(store.bundles.find(["g"])) == [group()]
    store.bundles.close(["c"], at=NOON)
    store.bundles.note([begun])
    assert list(store.bundles.open()) == ["g"]


def test_instants_are_kept_in_utc(store: Store) -> None:
    berlin = timezone(timedelta(hours=1))
    store.bundles.note([replace(group(), noted_at=NOON.astimezone(berlin))])
    assert store.bundles.find(["g"])[0].noted_at.tzinfo is UTC


def test_one_that_completes_leaves_nothing_behind(store: Store) -> None:
    store.bundles.note([chord(), group()])
    store.bundles.close(["c", "unknown"], at=NOON)
    store.bundles.close([], at=NOON)
    assert list(store.bundles.open()) == ["g"]
    assert list(store.bundles.closed(limit=9)) == []


def test_one_that_is_blamed_is_closed_as_failed_or_partial_with_the_first_reason(store: Store) -> None:
    store.bundles.note([chord(), group()])
    assert store.bundles.blame("c", "a job is missing\0")
    assert store.bundles.blame("c", "another one")
    assert store.bundles.blame("g", "gone")
    assert store.bundles.find(["c"])[0].blame == "a job is missing\\x00"
    store.bundles.close(["c"], at=NOON)
    store.bundles.close(["c", "g"], at=NOON + MINUTE)
    assert list(store.bundles.closed(limit=9)) == [
        ClosedBundle(id="g", state=BundleState.PARTIAL, reason="gone", closed_at=NOON + MINUTE),
        ClosedBundle(id="c", state=BundleState.FAILED, reason="a job is missing\\x00", closed_at=NOON),
    ]
    assert len(store.bundles.closed(limit=1)) == 1


def test_one_that_is_closed_is_neither_blamed_nor_noted_again(store: Store) -> None:
    store.bundles.note([group()])
    store.bundles.blame("g", "gone")
    store.bundles.close(["g"], at=NOON)
    assert not store.bundles.blame("g", "again")
    assert not store.bundles.blame("unknown", "again")
    store.bundles.note([group()])
    assert list(store.bundles.open()) == []


def test_what_is_old_is_deleted_open_or_closed(store: Store) -> None:
    store.bundles.note([group("old"), group("new", at=NOON + 2 * MINUTE), group("closed"), group("just closed")])
    for name, at in (("closed", NOON), ("just closed", NOON + 2 * MINUTE)):
        store.bundles.blame(name, "gone")
        store.bundles.close([name], at=at)
    assert store.bundles.prune(before=NOON + MINUTE) == 2
    assert list(store.bundles.open()) == ["new"]
    assert [one.id for one in store.bundles.closed(limit=9)] == ["just closed"]

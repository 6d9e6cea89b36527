from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from uuid import UUID

from slackwater.core.canary import Canary
from slackwater.core.reading import LaneCounts, LaneReading, Presence
from slackwater.ports import Store

NOW = datetime(2026, 11, 29, 12, 0, 0, 250000, tzinfo=UTC)
SECOND = timedelta(seconds=1)
OLD_BOOT, NEW_BOOT = UUID(int=9), UUID(int=1)


def presence(worker: str = "network@one", *, boot: UUID = OLD_BOOT, started_at: datetime = NOW) -> Presence:
    return Presence(
        worker=worker,
        boot=boot,
        host="one",
        pid=4711,
        started_at=started_at,
        refreshed_at=started_at + SECOND,
        lives_for=timedelta(seconds=6.5),
        lanes={
            "network": LaneCounts(
                slots=40, busy=3, started=9, finished=6, failed=1, expired=MappingProxyType({"late": 2})
            ),
            "compute": LaneCounts(slots=1),
        },
    )


def test_a_canary_waits_from_the_oldest_that_is_not_answered(store: Store) -> None:
    store.canaries.send("network", at=NOW)
    store.canaries.send("network", at=NOW + SECOND)
    store.canaries.send("compute", at=NOW)
    assert store.canaries.all() == [Canary(lane="compute", sent_at=NOW), Canary(lane="network", sent_at=NOW)]
    assert store.canaries.all()[1].silent(NOW + 3 * SECOND, within=2 * SECOND)
    assert not store.canaries.all()[1].silent(NOW + 2 * SECOND, within=2 * SECOND)


def test_an_answer_ends_the_waiting_and_an_older_one_changes_nothing(store: Store) -> None:
    store.canaries.send("network", at=NOW)
    store.canaries.answer("network", at=NOW + 2 * SECOND, worker="a")
    store.canaries.answer("network", at=NOW + SECOND, worker="b")
    [canary] = store.canaries.all()
    assert (canary.answered_at, canary.worker, canary.waits) == (NOW + 2 * SECOND, "a", False)
    store.canaries.send("network", at=NOW + 5 * SECOND)
    [canary] = store.canaries.all()
    assert (canary.sent_at, canary.waits) == (NOW + 5 * SECOND, True)


def test_a_presence_comes_back_as_it_was_said(store: Store) -> None:
    store.presence.refresh(presence())

    assert store.presence.all() == [presence()]


def test_a_worker_has_one_row_with_what_it_said_last(store: Store) -> None:
    later = replace(presence(), refreshed_at=NOW + 5 * SECOND, lanes={"network": LaneCounts(slots=40, busy=4)})
    store.presence.refresh(presence())
    store.presence.refresh(later)

    assert store.presence.all() == [later]


def test_an_earlier_start_of_a_worker_does_not_speak_for_a_later_one(store: Store) -> None:
    young = presence(boot=NEW_BOOT, started_at=NOW + SECOND)
    store.presence.refresh(presence())
    store.presence.refresh(young)
    store.presence.refresh(replace(presence(), refreshed_at=NOW + 60 * SECOND))

    assert store.presence.all() == [young]


def test_workers_are_listed_by_name_also_those_that_are_gone(store: Store) -> None:
    names = ["b@x", "a@x", "B@x", "a-b@x", "ä@x"]
    for name in names:
        store.presence.refresh(presence(name, started_at=NOW - timedelta(days=3)))

    assert [one.worker for one in store.presence.all()] == sorted(names)


def test_a_worker_is_forgotten_at_its_end_but_not_one_started_anew(store: Store) -> None:
    store.presence.refresh(presence(boot=NEW_BOOT))

    store.presence.forget("network@one", boot=OLD_BOOT)
    assert [one.boot for one in store.presence.all()] == [NEW_BOOT]
    store.presence.forget("network@one", boot=NEW_BOOT)
    store.presence.forget("network@one", boot=NEW_BOOT)
    assert store.presence.all() == []


def test_changing_the_counts_that_came_back_changes_nothing_kept(store: Store) -> None:
    store.presence.refresh(presence())

    kept = store.presence.all()[0].lanes
    assert isinstance(kept, dict)
    kept.clear()

    assert store.presence.all() == [presence()]


def test_what_is_unknown_comes_back_as_unknown_and_zero_as_zero(store: Store) -> None:
    unknown = LaneReading(at=NOW, lane="compute")
    nothing = LaneReading(at=NOW, lane="network", ready=0, running=0, slots=0, workers=0, oldest_age=timedelta(0))
    store.readings.append([nothing, unknown])

    assert store.readings.between(NOW, NOW + SECOND) == [unknown, nothing]


def test_the_same_lane_and_instant_twice_is_one_reading(store: Store) -> None:
    first = LaneReading(at=NOW, lane="network", ready=1, oldest_age=timedelta(seconds=1.5))
    store.readings.append([first, replace(first, ready=2)])
    store.readings.append([replace(first, ready=3), replace(first, lane="compute")])

    assert store.readings.between(NOW, NOW + SECOND) == [replace(first, lane="compute"), first]


def test_readings_of_a_span_are_from_its_start_to_before_its_end_in_order(store: Store) -> None:
    instants = [NOW + number * SECOND for number in range(5)]
    store.readings.append([LaneReading(at=at, lane=lane) for at in reversed(instants) for lane in ("b", "B", "a")])

    found = store.readings.between(instants[1], instants[3])

    assert [(one.at, one.lane) for one in found] == [(at, lane) for at in instants[1:3] for lane in ("B", "a", "b")]


def test_pruning_deletes_what_is_older_and_tells_how_many(store: Store) -> None:
    store.readings.append([LaneReading(at=NOW + number * SECOND, lane="network") for number in range(5)])

    assert store.readings.prune(NOW + 2 * SECOND) == 2
    assert store.readings.prune(NOW + 2 * SECOND) == 0
    assert [one.at for one in store.readings.between(NOW, NOW + 9 * SECOND)] == [NOW + n * SECOND for n in (2, 3, 4)]


def test_appending_nothing_changes_nothing(store: Store) -> None:
    store.readings.append([])

    assert store.readings.between(NOW - SECOND, NOW + SECOND) == []

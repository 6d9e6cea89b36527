from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from slackwater.core.reading import LaneCounts, LaneReading, Presence, QueueReading, compose

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def presence(worker: str, *, age: timedelta = SECOND, **busy: int) -> Presence:
    return Presence(
        worker=worker,
        boot=UUID(int=1),
        host="one",
        pid=1,
        started_at=NOW - timedelta(hours=1),
        refreshed_at=NOW - age,
        lives_for=6 * SECOND,
        lanes={lane: LaneCounts(slots=4, busy=count) for lane, count in busy.items()},
    )


def test_a_worker_counts_until_its_time_to_live_is_over() -> None:
    said = presence("a")

    assert said.alive(said.refreshed_at + 6 * SECOND)
    assert not said.alive(said.refreshed_at + 6 * SECOND + timedelta(microseconds=1))


def test_a_lanes_reading_adds_up_its_living_workers() -> None:
    workers = [
        presence("a", network=3),
        presence("b", network=1, compute=4),
        presence("gone", age=7 * SECOND, network=4),
    ]
    queue = QueueReading(ready=12, oldest_published_at=NOW - 5 * SECOND)

    assert compose(["network"], {"network": queue}, workers, now=NOW) == (
        LaneReading(at=NOW, lane="network", ready=12, running=4, slots=8, workers=2, oldest_age=5 * SECOND),
    )


def test_a_lane_without_workers_has_none_while_one_whose_workers_are_unknown_is_unknown() -> None:
    (without,) = compose(["network"], {}, [], now=NOW)
    (unknown,) = compose(["network"], {}, None, now=NOW)

    assert (without.running, without.slots, without.workers) == (0, 0, 0)
    assert (unknown.running, unknown.slots, unknown.workers) == (None, None, None)


def test_a_queue_that_could_not_be_read_is_unknown_and_an_empty_one_is_empty() -> None:
    readings = compose(["network", "compute"], {"compute": QueueReading(ready=0)}, [], now=NOW)

    assert [(one.lane, one.ready, one.oldest_age) for one in readings] == [
        ("network", None, None),
        ("compute", 0, None),
    ]


def test_a_message_published_by_a_clock_ahead_of_ours_has_waited_for_nothing() -> None:
    ahead = QueueReading(ready=1, oldest_published_at=NOW + SECOND)

    assert compose(["network"], {"network": ahead}, [], now=NOW)[0].oldest_age == timedelta(0)

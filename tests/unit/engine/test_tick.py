"""One tick: look, admit, publish; and what a crash between them leaves."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from structlog.testing import capture_logs
from tests.unit.engine.conftest import NOON, Outbox, StillClock

from slackwater import OccurrenceState, Schedule, minutes, seconds
from slackwater.adapters.memory import MemoryStore
from slackwater.core.schedule import look, occurrence_id
from slackwater.engine.tick import ADOPT_AFTER, Ticker

TEN = minutes(10)
FIRST = occurrence_id("sweep", NOON + TEN)


def state(store: MemoryStore) -> OccurrenceState | None:
    found = store.occurrences.get(FIRST)
    return None if found is None else found.state


def test_an_entry_seen_for_the_first_time_owes_nothing(ticker: Ticker, outbox: Outbox, store: MemoryStore) -> None:
    assert not outbox.sent
    assert store.occurrences.watermarks() == {"sweep": NOON}
    assert ticker.next_wake(after=NOON) == NOON + TEN


def test_an_entry_adopted_before_it_was_due_is_published_by_a_ticker_that_first_looks_later(
    make_ticker: Callable[[], Ticker], clock: StillClock, outbox: Outbox, store: MemoryStore
) -> None:
    store.occurrences.admit([], watermarks={"sweep": NOON})
    clock.move(TEN + seconds(1))
    assert make_ticker().tick() == 1
    assert [one.id for one in outbox.sent] == [FIRST]


def test_nothing_is_published_where_nothing_is_due(ticker: Ticker, clock: StillClock, outbox: Outbox) -> None:
    clock.move(TEN - seconds(1))
    assert ticker.tick() == 0
    assert not outbox.sent


def test_what_is_due_is_published_once(ticker: Ticker, clock: StillClock, outbox: Outbox, store: MemoryStore) -> None:
    clock.move(TEN)
    assert (ticker.tick(), ticker.tick()) == (1, 0)
    assert [(one.id, one.lane, one.start_by) for one in outbox.sent] == [(FIRST, "lane", NOON + TEN + minutes(5))]
    assert state(store) is OccurrenceState.QUEUED


def test_twins_publish_an_occurrence_once(
    ticker: Ticker, make_ticker: Callable[[], Ticker], clock: StillClock, outbox: Outbox
) -> None:
    twin = make_ticker()
    clock.move(TEN)
    assert (twin.tick(), ticker.tick()) == (1, 0)
    assert len(outbox.sent) == 1


def test_what_a_crash_left_unpublished_is_adopted_after_a_while(
    ticker: Ticker, clock: StillClock, outbox: Outbox, store: MemoryStore, schedule: Schedule
) -> None:
    clock.move(TEN)
    found = look(schedule, "sweep", since=NOON, now=clock.now, task_lane=None)
    store.occurrences.admit(found.occurrences, watermarks={"sweep": found.watermark})
    clock.move(ADOPT_AFTER - seconds(1))
    assert ticker.tick() == 0
    clock.move(seconds(1))
    assert ticker.tick() == 1
    assert [one.id for one in outbox.sent] == [FIRST]


def test_what_a_crash_left_unrecorded_is_published_again_under_the_same_id(
    ticker: Ticker, make_ticker: Callable[[], Ticker], clock: StillClock, outbox: Outbox
) -> None:
    clock.move(TEN)
    outbox.crashes = True
    with pytest.raises(KeyboardInterrupt):
        ticker.tick()
    outbox.crashes = False
    clock.move(ADOPT_AFTER)
    assert make_ticker().tick() == 1
    assert [one.id for one in outbox.sent] == [FIRST, FIRST]


def test_one_whose_window_closes_while_the_broker_is_away_expires_unpublished(
    ticker: Ticker, clock: StillClock, outbox: Outbox, store: MemoryStore
) -> None:
    clock.move(TEN)
    outbox.down = True
    assert ticker.tick() == 0
    assert state(store) is OccurrenceState.DUE
    outbox.down = False
    clock.move(minutes(5) + seconds(1))
    assert ticker.tick() == 0
    found = store.occurrences.get(FIRST)
    assert found is not None
    assert (found.state, found.reason) == (
        OccurrenceState.EXPIRED,
        "late: its window closed before it was published",
    )
    assert not outbox.sent


def test_an_unreachable_broker_is_told_once_and_so_is_its_return(
    ticker: Ticker, clock: StillClock, outbox: Outbox
) -> None:
    clock.move(TEN)
    outbox.down = True
    with capture_logs() as logs:
        for _ in range(3):
            ticker.tick()
            clock.move(ADOPT_AFTER)
        outbox.down = False
        assert ticker.tick() == 1
    said = [line["event"] for line in logs if line["log_level"] == "warning"]
    assert said == ["not published, will be tried again", "works again"]


def test_what_came_due_while_nobody_looked_is_missed_but_for_what_is_in_its_window(
    ticker: Ticker, clock: StillClock, outbox: Outbox, store: MemoryStore
) -> None:
    clock.move(3 * TEN + timedelta(minutes=1))
    assert ticker.tick() == 1
    assert [one.state for one in store.occurrences.since(NOON)] == [
        OccurrenceState.MISSED,
        OccurrenceState.MISSED,
        OccurrenceState.QUEUED,
    ]

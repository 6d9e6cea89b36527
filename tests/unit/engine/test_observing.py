"""Spans by a process's own looks."""

from datetime import timedelta

from tests.unit.engine.conftest import NOON

from slackwater import seconds
from slackwater.engine.observing import Observer

LIVES_FOR = seconds(15)


def looked(observer: Observer[str], *looks: tuple[float, str]) -> list[dict[str, timedelta]]:
    """Look at so many seconds after noon, each time at some things of one letter."""
    return [dict(observer.look(things, now=NOON + seconds(at))) for at, things in looks]


def test_nothing_is_found_in_the_amnesty_after_the_first_look() -> None:
    assert looked(Observer(lives_for=LIVES_FOR), (0, "a"), (5, "a"), (14, "a")) == [{}, {}, {}]


def test_then_each_thing_has_its_span_since_it_was_first_seen() -> None:
    *_, last = looked(Observer(lives_for=LIVES_FOR), (0, "a"), (10, "ab"), (20, "ab"))
    assert last == {"a": seconds(20), "b": seconds(10)}


def test_what_was_not_seen_once_starts_anew() -> None:
    *_, last = looked(Observer(lives_for=LIVES_FOR), (0, "a"), (10, ""), (20, "a"))
    assert last == {"a": seconds(0)}


def test_a_gap_longer_than_a_time_to_live_is_an_outage_and_all_start_anew() -> None:
    observer: Observer[str] = Observer(lives_for=LIVES_FOR)
    assert looked(observer, (0, "a"), (15, "a"))[1] == {"a": seconds(15)}
    assert looked(observer, (31, "a"), (45, "a"), (46, "a")) == [{}, {}, {"a": seconds(15)}]


def test_a_look_that_was_not_possible_is_an_outage_however_short() -> None:
    observer: Observer[str] = Observer(lives_for=LIVES_FOR)
    looked(observer, (0, "a"), (15, "a"))
    observer.interrupt()
    assert looked(observer, (16, "a"), (30, "a")) == [{}, {}]
    pardon = observer.amnesty(now=NOON + seconds(30))
    assert pardon is not None
    assert (pardon.until, pardon.reason) == (NOON + seconds(31), "the store or broker was away until 12:00:16")

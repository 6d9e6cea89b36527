"""Sweepers run at their own pace, and none stops the others."""

from collections.abc import Sequence
from datetime import timedelta
from threading import Event

from structlog.testing import capture_logs
from tests.unit.engine.conftest import NOON, StillClock

from slackwater.adapters.memory import MemoryStore
from slackwater.core.sweep import Sweep
from slackwater.engine.sweeping import QueryAndAct, QueryAndCount, Round, Sweepers
from slackwater.errors import StoreUnavailable


def sweepers(store: MemoryStore, clock: StillClock, *rounds: Round) -> Sweepers:
    return Sweepers(rounds=rounds, sweeps=store.sweeps, clock=clock)


def test_the_act_is_called_with_what_the_query_found_and_only_then(clock: StillClock) -> None:
    found: list[list[int]] = [[], [1, 2, 3]]
    acted: list[Sequence[int]] = []
    sweeper = QueryAndAct(name="stuck", find=lambda: found.pop(0), act=acted.append, clock=clock)
    assert sweeper.sweep() == Sweep(sweeper="stuck", at=NOON)
    assert sweeper.sweep() == Sweep(sweeper="stuck", at=NOON, found_count=3, recovered_count=3)
    assert acted == [[1, 2, 3]]


def test_an_act_may_say_how_many_it_recovered(clock: StillClock) -> None:
    sweeper = QueryAndAct(name="stuck", find=lambda: [1, 2], act=lambda _: 1, clock=clock)
    assert sweeper.sweep() == Sweep(sweeper="stuck", at=NOON, found_count=2, recovered_count=1)


def test_each_round_is_recorded_also_one_with_nothing_to_do(clock: StillClock) -> None:
    store = MemoryStore()
    idle = QueryAndCount(name="idle", act=lambda: 0, clock=clock)
    sweepers(store, clock, Round(name="idle", sweeper=idle, every=timedelta(minutes=5))).step()
    assert list(store.sweeps.all()) == [Sweep(sweeper="idle", at=NOON)]


def test_a_sweeper_that_fails_is_told_and_the_next_one_works(clock: StillClock) -> None:
    def fail() -> int:
        raise ZeroDivisionError("its own mistake")

    store = MemoryStore()
    rounds = [
        Round(name=name, sweeper=QueryAndCount(name=name, act=act, clock=clock), every=timedelta(minutes=5))
        for name, act in (("careless", fail), ("works", lambda: 2))
    ]
    with capture_logs() as logs:
        sweepers(store, clock, *rounds).step()
    told = {one.sweeper: (one.error, one.found_count) for one in store.sweeps.all()}
    assert told == {"careless": ("ZeroDivisionError: its own mistake", 0), "works": ("", 2)}
    assert [line["event"] for line in logs] == ["sweeper failed, comes again", "swept"]


def test_a_store_that_is_away_does_not_end_the_sweeping(clock: StillClock) -> None:
    class Gone(MemoryStore):
        def record(self, sweep: Sweep) -> None:
            raise StoreUnavailable("the store is away", where="here")

    store = Gone()
    store.sweeps.record = store.record  # type: ignore[method-assign]
    with capture_logs() as logs:
        sweepers(
            store,
            clock,
            Round(name="one", sweeper=QueryAndCount(name="one", act=lambda: 0, clock=clock), every=timedelta(1)),
        ).step()
    assert [line["event"] for line in logs] == ["sweep not recorded"]


def test_it_comes_again_when_its_time_has_come_and_not_before(clock: StillClock) -> None:
    rounds: list[str] = []

    def act() -> int:
        rounds.append("round")
        return 0

    store = MemoryStore()
    often = Round(name="often", sweeper=QueryAndCount(name="often", act=act, clock=clock), every=timedelta(0))
    seldom = Round(name="seldom", sweeper=QueryAndCount(name="seldom", act=act, clock=clock), every=timedelta(hours=1))
    both = sweepers(store, clock, often, seldom)
    both.step()
    both.step()
    assert len(rounds) == 3
    stop = Event()
    stop.set()
    both.run(stop)
    assert len(rounds) == 3

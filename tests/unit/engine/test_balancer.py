"""The balancer goes on when the store or the broker does not."""

from collections.abc import Callable
from datetime import timedelta
from threading import Event

import pytest
from structlog.testing import capture_logs
from tests.unit.engine.conftest import NOON, KnownStates, Outbox, Queues, StillClock

from slackwater import LaneReading, OccurrenceState, Settings, minutes
from slackwater.adapters.memory import MemoryStore
from slackwater.core.job import JobState
from slackwater.core.reading import QueueReading
from slackwater.engine.balancer import Balancer, Duty
from slackwater.engine.probe import Probe, keep
from slackwater.engine.settle import Settler
from slackwater.engine.tick import Ticker
from slackwater.errors import StoreUnavailable


@pytest.fixture
def queues() -> Queues:
    return Queues({"p_lane": QueueReading(ready=3, oldest_published_at=NOON - minutes(1))})


@pytest.fixture
def probe(queues: Queues, store: MemoryStore, clock: StillClock) -> Probe:
    return Probe(queues={"lane": "p_lane"}, gauge=queues, presence=store.presence, clock=clock)


def test_a_duty_that_fails_is_told_once_tried_again_and_told_once_when_it_works() -> None:
    answers = iter([True, False, False, True, True])

    def act() -> None:
        if not next(answers):
            raise StoreUnavailable("the store is away", where="here")

    duty = Duty("settle", act, timedelta(seconds=60))
    with capture_logs() as logs:
        duty.run(now=0)
        assert duty.due == 60
        duty.run(now=60)
        assert duty.due == 61, "sooner than its own pace"
        for now in (61, 62, 122):
            duty.run(now=now)
    assert [(line["event"], line["duty"]) for line in logs] == [
        ("cannot work, keeps trying", "settle"),
        ("works again", "settle"),
    ]


def test_a_duty_swallows_no_mistake() -> None:
    def act() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Duty("settle", act, timedelta(seconds=1)).run(now=0)


def test_a_reading_says_what_the_broker_and_the_workers_say(probe: Probe) -> None:
    assert probe.read() == (
        LaneReading(at=NOON, lane="lane", ready=3, running=0, slots=0, workers=0, oldest_age=minutes(1)),
    )


def test_without_a_broker_what_waits_is_unknown_and_told_once(probe: Probe, queues: Queues) -> None:
    queues.down = True
    with capture_logs() as logs:
        for _ in range(2):
            assert probe.read() == (LaneReading(at=NOON, lane="lane", running=0, slots=0, workers=0),)
        queues.down = False
        assert probe.read()[0].ready == 3
    assert [line["event"] for line in logs] == ["queues unknown", "works again"]


def test_old_readings_are_deleted(store: MemoryStore) -> None:
    old, new = LaneReading(at=NOON, lane="lane"), LaneReading(at=NOON + minutes(2), lane="lane")
    for taken in (old, new):
        keep(store.readings, [taken], kept_for=minutes(1))
    assert store.readings.between(NOON, NOON + minutes(3)) == [new]


def test_a_balancer_that_is_stopped_settles_what_has_ended_since_its_last_look(
    make_ticker: Callable[[], Ticker], probe: Probe, store: MemoryStore, clock: StillClock, outbox: Outbox
) -> None:
    results = KnownStates()
    settler = Settler(occurrences=store.occurrences, fan_outs=store.fan_outs, results=results, clock=clock)
    balancer = Balancer(
        ticker=make_ticker(), settler=settler, probe=probe, readings=store.readings, clock=clock, settings=Settings()
    )
    balancer.step()
    clock.move(minutes(10))
    balancer.step()
    [sent] = outbox.sent
    results.known[str(sent.id)] = JobState.DONE
    stop = Event()
    stop.set()
    balancer.run(stop)
    [settled] = store.occurrences.since(NOON)
    assert settled.state is OccurrenceState.DONE


def test_a_balancer_publishes_what_is_due_and_keeps_readings_until_it_is_told_to_stop(
    make_ticker: Callable[[], Ticker], probe: Probe, store: MemoryStore, clock: StillClock, outbox: Outbox
) -> None:
    settler = Settler(occurrences=store.occurrences, fan_outs=store.fan_outs, results=KnownStates(), clock=clock)
    balancer = Balancer(
        ticker=make_ticker(), settler=settler, probe=probe, readings=store.readings, clock=clock, settings=Settings()
    )
    balancer.step()
    assert not outbox.sent
    clock.move(minutes(10))
    balancer.step()
    balancer.step()
    assert len(outbox.sent) == 1
    assert len(store.readings.between(NOON, NOON + minutes(20))) == 1
    stop = Event()
    stop.set()
    balancer.run(stop)

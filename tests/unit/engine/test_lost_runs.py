"""The sweeper of lost runs, over the store in memory and a clock that the test moves."""

from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

import pytest
from tests.unit.engine.conftest import NOON, StillClock

from slackwater import hours, minutes, seconds
from slackwater.adapters.memory import MemoryStore
from slackwater.core.admission import Ask, LeaseRule
from slackwater.core.message import Held, Message
from slackwater.core.under_way import Offer, UnderWay
from slackwater.engine.lost_runs import LostRuns
from slackwater.errors import BrokerUnavailable

BOOT = UUID(int=1)


@dataclass
class Lost:
    """What acts on lost jobs, and notes it."""

    held: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)

    def as_held(self, lost: UnderWay, reason: str) -> Held:
        assert lost.message is not None
        return Held(
            message=lost.message,
            lane=lost.lane or "",
            tries=lost.start.tries,
            not_before=NOON,
            waits_for=lost.lease,
            reason=reason,
            held_at=NOON,
        )

    def told_held(self, held: Held) -> None:
        self.held.append(held.job)

    def give_up(self, lost: UnderWay, reason: str) -> None:
        self.given_up.append(f"{lost.job}: {reason}")


@dataclass
class Broker:
    down: bool = False

    def look(self) -> None:
        if self.down:
            raise BrokerUnavailable("the broker is away")


@dataclass
class Ground:
    clock: StillClock
    store: MemoryStore = field(init=False)
    lost: Lost = field(default_factory=Lost)
    broker: Broker = field(default_factory=Broker)

    def __post_init__(self) -> None:
        self.store = MemoryStore(now=self.clock.run)

    def sweeper(self) -> LostRuns:
        return LostRuns(
            store=self.store,
            lost=self.lost,
            lanes=frozenset({"till"}),
            look_at_broker=self.broker.look,
            clock=self.clock,
            lives_for=seconds(15),
            lost_after=minutes(1),
            hopeless_after=hours(1),
        )

    def start(self, job: str, *, lane: str = "till") -> None:
        message = Message(job=job, task="t", queue=lane, headers={}, body=b"", content_type="", content_encoding="")
        lease = LeaseRule(name=job, lives_for=seconds(15))
        ask = Ask(job=job, tries=0, task="t", boot=BOOT, redelivered=False, lease=lease)
        self.store.runs.begin([ask])
        offer = Offer(job=job, tries=0, task="t", lane=lane, lease=job, message=message)
        assert self.store.runs.keep(BOOT, [offer])

    def sweep_for(self, sweeper: LostRuns, span: timedelta, *, renewed: tuple[str, ...] = ()) -> int:
        """Sweep every two seconds, while some worker lives; return how many were recovered."""
        recovered = 0
        for _ in range(int(span / seconds(2))):
            self.clock.move(seconds(2))
            self.store.runs.renew(UUID(int=2) if not renewed else BOOT, renewed, lives_for=seconds(15))
            recovered += sweeper.sweep().recovered_count
        return recovered


@pytest.fixture
def ground(clock: StillClock) -> Ground:
    return Ground(clock)


def test_a_run_whose_lease_has_ended_waits_in_the_store_once_nothing_comes_back(ground: Ground) -> None:
    ground.start("a")
    ground.store.runs.lapse_all(BOOT)
    sweeper = ground.sweeper()
    assert ground.sweep_for(sweeper, seconds(60)) == 0
    assert ground.sweep_for(sweeper, seconds(4)) == 1
    assert ground.lost.held == ["a"]
    assert "lost: its lease ended" in ground.store.holds.find(["a"])["a"].reason
    assert ground.sweep_for(sweeper, seconds(90)) == 0


def test_one_whose_body_lives_is_never_found(ground: Ground) -> None:
    ground.start("a")
    assert ground.sweep_for(ground.sweeper(), minutes(5), renewed=("a",)) == 0


def test_two_sweepers_recover_it_once(ground: Ground) -> None:
    ground.start("a")
    ground.store.runs.lapse_all(BOOT)
    one, other = ground.sweeper(), ground.sweeper()
    other.sweep()
    ground.clock.move(seconds(2))
    assert ground.sweep_for(one, seconds(70)) == 1
    assert ground.sweep_for(other, seconds(70)) == 0
    assert ground.lost.held == ["a"]


def test_a_broker_that_is_away_starts_the_span_anew(ground: Ground) -> None:
    ground.start("a")
    ground.store.runs.lapse_all(BOOT)
    sweeper = ground.sweeper()
    ground.sweep_for(sweeper, seconds(58))
    ground.broker.down = True
    with pytest.raises(BrokerUnavailable):
        sweeper.sweep()
    ground.broker.down = False
    assert ground.sweep_for(sweeper, seconds(60)) == 0
    assert ground.sweep_for(sweeper, seconds(4)) == 1


def test_a_balancer_that_stood_still_judges_nobody_at_once(ground: Ground) -> None:
    ground.start("a")
    ground.store.runs.lapse_all(BOOT)
    sweeper = ground.sweeper()
    ground.sweep_for(sweeper, seconds(30))
    ground.clock.move(hours(1))
    assert sweeper.sweep().recovered_count == 0
    assert "nobody is judged until" in sweeper.sweep().note


def test_one_whose_lane_is_gone_is_given_up_after_an_hour(ground: Ground) -> None:
    ground.start("a", lane="former")
    ground.store.runs.lapse_all(BOOT)
    sweeper = ground.sweeper()
    ground.sweep_for(sweeper, minutes(59))
    assert ground.lost.given_up == []
    assert ground.sweep_for(sweeper, minutes(1) + seconds(4)) == 0
    assert ground.lost.given_up[0].endswith("and its lane is gone")

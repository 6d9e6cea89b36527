"""The sweeper of dead workers, over the store in memory and a broker that is a few counters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from tests.unit.engine.conftest import StillClock

from slackwater.adapters.memory import MemoryStore
from slackwater.core.liveness import Owner
from slackwater.core.reading import Presence
from slackwater.engine.dead_workers import DeadWorkers
from slackwater.errors import BrokerUnavailable

SECOND = timedelta(seconds=1)
LIVES = 6 * SECOND
FROZEN = 30 * SECOND
ONE, TWO = (Owner(worker=name, boot=uuid4()) for name in ("one@a", "two@a"))


@dataclass
class Hands:
    """What owners hold, and how many connections the broker sees of each."""

    held: dict[Owner, int] = field(default_factory=dict)
    seen: dict[Owner, int | None] = field(default_factory=dict)
    queued: int = 0
    away: bool = False

    def enter(self, owner: Owner) -> None:
        self.held.setdefault(owner, 0)

    def owners(self) -> Mapping[Owner, int]:
        if self.away:
            raise BrokerUnavailable("the broker is away")
        return dict(self.held)

    def connections(self, owner: Owner) -> int | None:
        return self.seen.get(owner, 0)

    def restore(self, owner: Owner) -> int:
        count, self.held[owner] = self.held.get(owner, 0), 0
        self.queued += count
        return count

    def forget(self, owner: Owner) -> bool:
        return self.held.pop(owner, 0) == 0

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class Leases:
    lapsed: list[UUID] = field(default_factory=list)

    def lapse_all(self, boot: UUID) -> None:
        self.lapsed.append(boot)


@dataclass
class Ward:
    """A sweeper with its surroundings."""

    clock: StillClock
    store: MemoryStore
    hands: Hands = field(default_factory=Hands)
    leases: Leases = field(default_factory=Leases)

    def sweeper(self, *, itself: Owner | None = None) -> DeadWorkers:
        return DeadWorkers(
            presence=self.store.presence,
            recovery=self.hands,
            leases=self.leases,
            clock=self.clock,
            lives_for=LIVES,
            frozen_after=FROZEN,
            itself=lambda: itself,
        )

    def refresh(self, *owners: Owner, clock_off_by: timedelta = timedelta(0)) -> None:
        now = self.clock.now + clock_off_by
        for one in owners:
            self.store.presence.refresh(
                Presence(
                    worker=one.worker,
                    boot=one.boot,
                    host="a",
                    pid=1,
                    started_at=now - timedelta(days=1),
                    refreshed_at=now,
                    lives_for=LIVES,
                    lanes={},
                )
            )

    def rounds(self, sweeper: DeadWorkers, count: int, *alive: Owner, clock_off_by: timedelta = timedelta(0)) -> int:
        """Look every two seconds, the living refreshing in between; return how many were found dead."""
        found = 0
        for _ in range(count):
            self.refresh(*alive, clock_off_by=clock_off_by)
            found += sweeper.sweep().found_count
            self.clock.move(2 * SECOND)
        return found


@pytest.fixture
def ward(clock: StillClock, store: MemoryStore) -> Ward:
    ward = Ward(clock, store)
    ward.hands.held = {ONE: 2, TWO: 1}
    ward.hands.seen = {ONE: 3, TWO: 3}
    return ward


def test_while_all_live_nothing_is_done(ward: Ward) -> None:
    assert ward.rounds(ward.sweeper(), 20, ONE, TWO) == 0
    assert ward.hands.queued == 0


def test_a_dead_workers_jobs_and_leases_are_recovered_and_its_presence_is_forgotten(ward: Ward) -> None:
    sweeper = ward.sweeper()
    ward.rounds(sweeper, 5, ONE, TWO)
    ward.hands.seen[ONE] = 0

    assert ward.rounds(sweeper, 5, TWO) == 1

    assert (ward.hands.queued, ward.hands.held) == (2, {TWO: 1})
    assert ward.leases.lapsed == [ONE.boot]
    assert [one.worker for one in ward.store.presence.all()] == [TWO.worker]


def test_a_dead_worker_is_found_in_the_round_after_its_presence_lapsed(ward: Ward) -> None:
    sweeper = ward.sweeper()
    ward.rounds(sweeper, 5, ONE, TWO)
    ward.hands.seen[ONE] = 0

    assert ward.rounds(sweeper, 3, TWO) == 0
    assert ward.rounds(sweeper, 1, TWO) == 1


def test_a_stopped_worker_whose_connections_are_seen_is_given_time(ward: Ward) -> None:
    sweeper = ward.sweeper()
    ward.rounds(sweeper, 5, ONE, TWO)

    assert ward.rounds(sweeper, 17, TWO) == 0
    assert ward.rounds(sweeper, 3, TWO) == 1


def test_one_that_died_before_its_first_presence_is_found(ward: Ward) -> None:
    early = Owner(worker="early@a", boot=uuid4())
    ward.hands.held[early] = 1
    sweeper = ward.sweeper()

    assert ward.rounds(sweeper, 6, ONE, TWO) == 1
    assert ward.hands.queued == 1


def test_one_that_never_said_it_lives_and_is_seen_is_left_alone(ward: Ward) -> None:
    other = Owner(worker="other@b", boot=uuid4())
    ward.hands.held[other], ward.hands.seen[other] = 1, 2

    assert ward.rounds(ward.sweeper(), 100, ONE, TWO) == 0


def test_one_that_never_said_it_lives_may_connect_anew(ward: Ward) -> None:
    other = Owner(worker="other@b", boot=uuid4())
    ward.hands.held[other], ward.hands.seen[other] = 1, 2
    sweeper = ward.sweeper()
    ward.rounds(sweeper, 9, ONE, TWO)
    ward.hands.seen[other] = 0
    assert ward.rounds(sweeper, 1, ONE, TWO) == 0
    ward.hands.seen[other] = 2
    assert ward.rounds(sweeper, 20, ONE, TWO) == 0
    ward.hands.seen[other] = 0
    assert ward.rounds(sweeper, 5, ONE, TWO) == 1


@pytest.mark.parametrize("off", [-90 * SECOND, 90 * SECOND], ids=["behind", "ahead"])
def test_a_worker_whose_clock_is_wrong_is_not_taken_for_dead_and_is_found_when_it_is(
    ward: Ward, off: timedelta
) -> None:
    ward.hands.held = {ONE: 2}
    ward.hands.seen = {ONE: None}
    sweeper = ward.sweeper()

    assert ward.rounds(sweeper, 30, ONE, clock_off_by=off) == 0
    assert ward.rounds(sweeper, 5) == 1


def test_a_sweeper_that_has_just_started_judges_nobody_for_one_time_to_live(ward: Ward) -> None:
    ward.refresh(ONE, TWO)
    ward.hands.seen = {}
    ward.clock.move(timedelta(hours=1))
    sweeper = ward.sweeper()

    sweep = sweeper.sweep()

    assert sweep.found_count == 0
    assert sweep.note.startswith("nobody is judged until 13:00:06")
    ward.clock.move(2 * SECOND)
    assert ward.rounds(sweeper, 10, ONE, TWO) == 0


def test_after_an_outage_of_three_times_to_live_nobody_who_comes_back_is_judged(ward: Ward) -> None:
    sweeper = ward.sweeper()
    ward.rounds(sweeper, 5, ONE, TWO)
    ward.hands.away = True
    for _ in range(9):
        with pytest.raises(BrokerUnavailable):
            sweeper.sweep()
        ward.clock.move(2 * SECOND)
    ward.hands.away, ward.hands.seen = False, {}

    assert ward.rounds(sweeper, 2) == 0
    assert ward.rounds(sweeper, 10, ONE, TWO) == 0


def test_a_sweeper_that_was_stopped_itself_starts_anew(ward: Ward) -> None:
    sweeper = ward.sweeper()
    ward.rounds(sweeper, 5, ONE, TWO)
    ward.hands.seen = {}
    ward.clock.move(timedelta(minutes=5))

    assert ward.rounds(sweeper, 1) == 0
    assert ward.rounds(sweeper, 10, ONE, TWO) == 0


def test_a_worker_does_not_judge_itself(ward: Ward) -> None:
    ward.hands.seen = {}
    sweeper = ward.sweeper(itself=ONE)
    ward.rounds(sweeper, 5, TWO)

    assert ward.rounds(sweeper, 20, TWO) == 0


def test_a_crash_between_lapsing_and_restoring_is_made_good_in_the_next_round(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweeper = ward.sweeper()
    ward.rounds(sweeper, 5, ONE, TWO)
    ward.hands.seen[ONE] = 0
    ward.rounds(sweeper, 3, TWO)
    with monkeypatch.context() as crash:
        crash.setattr(ward.hands, "restore", _crash)
        with pytest.raises(KeyboardInterrupt):
            sweeper.sweep()

    ward.refresh(TWO)
    assert sweeper.sweep().recovered_count == 1
    assert ward.hands.queued == 2


def _crash(owner: Owner) -> int:
    raise KeyboardInterrupt

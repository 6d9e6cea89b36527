"""The sweeper of bundles, over the store in memory, a broker and results that the test sets."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.unit.engine.conftest import NOON, KnownStates, StillClock

from slackwater import minutes, seconds
from slackwater.adapters.memory import MemoryStore
from slackwater.core.admission import Ask, LeaseRule
from slackwater.core.bundle import Bundle, BundleState, Link, Member
from slackwater.core.job import JobState
from slackwater.core.message import Held, Message
from slackwater.core.under_way import Offer
from slackwater.engine.stuck_bundles import StuckBundles
from slackwater.errors import BrokerUnavailable

EVERY = seconds(5)
MISSING_AFTER = minutes(1)


@dataclass
class Ground:
    """A broker, results, and what was ended in them."""

    clock: StillClock
    store: MemoryStore = field(default_factory=MemoryStore)
    results: KnownStates = field(default_factory=KnownStates)
    placed: frozenset[str] | None = frozenset()
    down: bool = False
    looks: int = 0
    ended: list[str] = field(default_factory=list)

    def look(self) -> frozenset[str] | None:
        self.looks += 1
        if self.down:
            raise BrokerUnavailable("the broker is away")
        return self.placed

    def end_member(self, bundle: Bundle, member: Member, unended: Sequence[Link], *, stuck: str) -> None:
        assert stuck
        self.ended.append(f"{bundle.id}: {member.job} with {' '.join(one.job for one in unended)}")
        self.results.known |= {one.job: JobState.FAILED for one in (*unended, Link(member.job))}

    def end_body(self, bundle: Bundle, reason: str) -> None:
        assert bundle.body is not None
        self.ended.append(f"{bundle.id}: body, {reason}")
        self.results.known[bundle.body.job] = JobState.FAILED

    def sweeper(self) -> StuckBundles:
        return StuckBundles(
            store=self.store,
            results=self.results,
            placed=self.look,
            ends=self,
            clock=self.clock,
            lives_for=seconds(15),
            missing_after=MISSING_AFTER,
            grace=minutes(15),
        )

    def note(self, name: str, *members: str, body: str | None = None, **given: Any) -> None:
        """Note a bundle; the jobs of a member are its letters."""
        made = tuple(Member(links=tuple(Link(job) for job in jobs)) for jobs in members)
        last = None if body is None else Member(links=(Link(body),))
        self.store.bundles.note([Bundle(id=name, members=made, body=last, noted_at=self.clock.now, **given)])

    def sweep_for(self, sweeper: StuckBundles, span: timedelta) -> int:
        """Sweep every five seconds; return how many bundles were found."""
        found = 0
        for _ in range(int(span / EVERY)):
            self.clock.move(EVERY)
            found += sweeper.sweep().found_count
        return found

    def closed(self) -> dict[str, tuple[BundleState, str]]:
        return {one.id: (one.state, one.reason) for one in self.store.bundles.closed(limit=9)}


@pytest.fixture
def ground(clock: StillClock) -> Ground:
    return Ground(clock)


def test_a_missing_member_is_ended_once_it_was_seen_nowhere_for_long(ground: Ground) -> None:
    ground.note("g", "a", "b")
    ground.results.known["a"] = JobState.DONE
    sweeper = ground.sweeper()
    assert ground.sweep_for(sweeper, 2 * MISSING_AFTER - EVERY) == 0
    assert ground.sweep_for(sweeper, 2 * EVERY) == 1
    assert ground.ended == ["g: b with b"]
    assert ground.sweep_for(sweeper, minutes(3)) == 0
    assert ground.closed() == {"g": (BundleState.PARTIAL, "1 of 2 members will never end: b (nobody has it)")}


def test_a_young_bundle_costs_no_look_at_the_broker(ground: Ground) -> None:
    ground.note("g", "a")
    ground.sweep_for(ground.sweeper(), MISSING_AFTER - EVERY)
    assert ground.looks == 0


def test_nothing_is_asked_where_nothing_is_waited_for(ground: Ground) -> None:
    ground.sweep_for(ground.sweeper(), minutes(3))
    assert ground.looks == 0


def test_one_that_turns_up_in_between_starts_its_span_anew(ground: Ground) -> None:
    ground.note("g", "a")
    sweeper = ground.sweeper()
    ground.sweep_for(sweeper, 2 * MISSING_AFTER - EVERY)
    ground.placed = frozenset("a")
    ground.sweep_for(sweeper, EVERY)
    ground.placed = frozenset()
    assert ground.sweep_for(sweeper, MISSING_AFTER) == 0
    assert ground.sweep_for(sweeper, 2 * EVERY) == 1


def test_what_the_store_will_start_again_is_not_missing(ground: Ground) -> None:
    ground.note("g", "a", "b")
    message = Message(job="a", task="t", queue="till", headers={}, body=b"", content_type="", content_encoding="")
    held = Held(message=message, lane="till", tries=1, not_before=NOON, reason="retry", held_at=NOON)
    ground.store.holds.hold([held])
    lease = LeaseRule(name="b", lives_for=seconds(15))
    begun = Ask(job="b", tries=0, task="t", boot=UUID(int=1), redelivered=False, lease=lease)
    ground.store.runs.begin([begun])
    offer = Offer(job="b", tries=0, task="t", lane="till", lease="b", message=message)
    assert ground.store.runs.keep(UUID(int=1), [offer])
    assert ground.sweep_for(ground.sweeper(), minutes(5)) == 0


def test_while_the_publisher_may_come_again_nothing_of_a_chord_that_is_not_whole_is_missing(ground: Ground) -> None:
    ground.note("c", "a", "b", body="e", whole=False, publisher="p")
    ground.results.known["a"] = JobState.DONE
    ground.placed = frozenset("p")
    sweeper = ground.sweeper()
    assert ground.sweep_for(sweeper, minutes(5)) == 0
    ground.placed = frozenset()
    message = Message(job="p", task="t", queue="till", headers={}, body=b"", content_type="", content_encoding="")
    held = Held(message=message, lane="till", tries=1, not_before=NOON, reason="retry", held_at=NOON)
    ground.store.holds.hold([held])
    assert ground.sweep_for(sweeper, minutes(5)) == 0
    ground.store.holds.drop(["p"])
    assert ground.sweep_for(sweeper, MISSING_AFTER + 2 * EVERY) == 1
    assert ground.ended == ["c: b with b"]
    assert ground.sweep_for(sweeper, MISSING_AFTER + 2 * EVERY) == 1
    reason = "its publisher broke off: 1 of 2 members will never end: b (nobody has it)"
    ground.sweep_for(sweeper, EVERY)
    assert ground.closed() == {"c": (BundleState.FAILED, reason)}


def test_a_chord_that_is_still_being_published_is_young(ground: Ground) -> None:
    sweeper = ground.sweeper()
    for _ in range(10):
        ground.note("c", "a", body="e", whole=False)
        assert ground.sweep_for(sweeper, MISSING_AFTER - EVERY) == 0
    ground.note("c", "a", body="e")
    ground.placed = frozenset("a")
    assert ground.sweep_for(sweeper, minutes(5)) == 0
    assert ground.store.bundles.find(["c"])[0].whole


def test_a_broker_that_is_away_starts_all_spans_anew(ground: Ground) -> None:
    ground.note("g", "a")
    sweeper = ground.sweeper()
    ground.sweep_for(sweeper, 2 * MISSING_AFTER - EVERY)
    ground.down = True
    with pytest.raises(BrokerUnavailable):
        sweeper.sweep()
    ground.down = False
    assert ground.sweep_for(sweeper, MISSING_AFTER) == 0
    assert ground.sweep_for(sweeper, 2 * EVERY) == 1


def test_while_the_broker_cannot_tell_nothing_is_missing(ground: Ground) -> None:
    ground.note("g", "a")
    ground.placed = None
    assert ground.sweep_for(ground.sweeper(), minutes(10)) == 0


def test_a_chord_is_closed_once_its_body_was_told(ground: Ground) -> None:
    ground.note("c", "ab", "d", body="e")
    ground.results.known |= {"a": JobState.DONE, "d": JobState.DONE}
    sweeper = ground.sweeper()
    assert ground.sweep_for(sweeper, 2 * MISSING_AFTER + EVERY) == 1
    assert ground.ended == ["c: b with b"]
    # Celery has not told the body: it is told once that is seen for as long.
    assert ground.closed() == {}
    assert ground.sweep_for(sweeper, MISSING_AFTER + 2 * EVERY) == 1
    assert ground.ended[1:] == ["c: body, its body was not told that members had failed: b (failed)"]
    ground.sweep_for(sweeper, EVERY)
    assert ground.closed() == {"c": (BundleState.FAILED, "1 of 2 members will never end: b (nobody has it)")}


def test_a_bundle_around_another_waits_until_that_is_closed(ground: Ground) -> None:
    ground.note("inner", "a", body="b")
    ground.note("outer", "bc", body="d")
    sweeper = ground.sweeper()
    ground.sweep_for(sweeper, 2 * MISSING_AFTER + EVERY)
    assert ground.ended == ["inner: a with a"]
    ground.results.known["b"] = JobState.FAILED
    ground.sweep_for(sweeper, MISSING_AFTER + 3 * EVERY)
    assert ground.ended[1:] == ["outer: c with c"]
    assert "b (failed)" in ground.store.bundles.find(["outer"])[0].blame


def test_an_end_that_was_seen_counts_though_its_result_is_gone(ground: Ground) -> None:
    ground.note("g", "a", "b")
    ground.placed = frozenset("b")
    ground.results.known["a"] = JobState.DONE
    sweeper = ground.sweeper()
    ground.sweep_for(sweeper, minutes(2))
    ground.results.known = {"b": JobState.DONE}
    ground.sweep_for(sweeper, minutes(3))
    assert (ground.ended, list(ground.store.bundles.open()), ground.closed()) == ([], [], {})


def test_one_that_another_has_closed_is_forgotten(ground: Ground) -> None:
    ground.note("g", "a")
    sweeper = ground.sweeper()
    ground.sweep_for(sweeper, 2 * MISSING_AFTER - EVERY)
    ground.store.bundles.close(["g"], at=NOON)
    assert ground.sweep_for(sweeper, minutes(2)) == 0
    assert ground.ended == []

"""Both adapters, side by side: the same acts in the same order come to the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slackwater.adapters.memory import MemoryStore
from slackwater.adapters.postgres import PostgresStore
from slackwater.core.admission import Ask, KeyRule, LeaseRule, WhenTaken
from slackwater.core.job import JobState
from slackwater.core.message import Held, Message
from slackwater.core.under_way import Offer, Start
from slackwater.ports import Store
from slackwater.ports.delivery import Announcement, Begun, Finish

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
JOBS, NAMES = st.sampled_from("abc"), st.sampled_from("xy")
INSTANTS = st.integers(0, 3).map(lambda minutes: NOON + timedelta(minutes=minutes))
KEYS = st.builds(
    KeyRule,
    name=NAMES,
    fresh_since=st.none() | INSTANTS,
    when_taken=st.sampled_from([WhenTaken.SKIP, WhenTaken.WAIT, WhenTaken.LATER]),
)
LEASES = st.builds(
    LeaseRule, name=NAMES, when_taken=st.sampled_from(WhenTaken), lives_for=st.just(timedelta(minutes=9))
)
MESSAGE = Message(
    job="", task="t", queue="till", headers={}, body=b"", content_type="text/plain", content_encoding="utf-8"
)
ASKS = st.builds(
    Ask,
    job=JOBS,
    tries=st.integers(0, 2),
    task=st.just("t"),
    boot=st.sampled_from([UUID(int=1), UUID(int=2)]),
    redelivered=st.booleans(),
    released=st.booleans(),
    key=st.none() | KEYS,
    lease=st.none() | LEASES,
)
OFFERS = st.builds(
    Offer,
    job=JOBS,
    tries=st.integers(0, 2),
    task=st.just("t"),
    lane=st.none() | st.just("till"),
    lease=NAMES,
    key=st.none() | NAMES,
    message=st.none() | st.just(MESSAGE),
)
TURNS = st.integers(0, 9)
ACTS = st.one_of(
    st.tuples(st.just("begin"), st.lists(ASKS, min_size=1, max_size=4)),
    st.tuples(st.just("keep"), st.tuples(st.sampled_from([1, 2]), st.lists(OFFERS, min_size=1, max_size=3))),
    st.tuples(st.just("finish"), st.lists(st.tuples(TURNS, st.sampled_from(JobState), INSTANTS), max_size=3)),
    st.tuples(st.just("announce"), st.lists(st.tuples(JOBS, KEYS), max_size=3)),
    st.tuples(st.just("hand_back"), st.lists(st.tuples(JOBS, st.integers(0, 2)), max_size=3)),
    st.tuples(st.just("lapse"), st.tuples(st.sampled_from([1, 2]), st.lists(JOBS, max_size=2))),
    st.tuples(st.just("lapse_all"), st.sampled_from([1, 2])),
    st.tuples(st.just("take_back"), st.tuples(JOBS, st.integers(0, 2), st.integers(1, 3), NAMES)),
)


class _Place:
    """A store as one example sees it: with names, and fences, of its own."""

    def __init__(self, store: Store) -> None:
        self._store, self._own = store, uuid4().hex
        self._begun: list[tuple[Ask, Begun]] = []
        self._numbers: dict[int, int] = {}
        self._number = count(1)

    def act(self, name: str, given: Any) -> object:
        return getattr(self, name)(given)

    def begin(self, asks: list[Ask]) -> object:
        own = [self._ask(one) for one in asks]
        begun = self._store.runs.begin(own)
        self._begun.extend(zip(own, begun, strict=True))
        for fence in [one.fence for one in begun if one.fence is not None]:
            self._numbers[fence] = next(self._number)
        return [(self._plain(one.admission), self._numbers.get(one.fence or 0)) for one in begun]

    def keep(self, given: tuple[int, list[Offer]]) -> object:
        own = [
            replace(
                one,
                job=self._of(one.job),
                lease=self._of(one.lease),
                message=None if one.message is None else replace(one.message, job=self._of(one.job)),
            )
            for one in given[1]
        ]
        return self._plain(sorted(self._store.runs.keep(self._boot(given[0]), own)))

    def finish(self, given: list[tuple[int, JobState, datetime]]) -> None:
        known = [(self._begun[turn], state, at) for turn, state, at in given if turn < len(self._begun)]
        self._store.runs.finish(
            [
                Finish(
                    job=ask.job,
                    tries=ask.tries,
                    state=state,
                    ended_at=at,
                    key=None if ask.key is None else ask.key.name,
                    lease=None if ask.lease is None else ask.lease.name,
                    fence=begun.fence,
                    digest="d",
                )
                for (ask, begun), state, at in known
            ]
        )

    def announce(self, given: list[tuple[str, KeyRule]]) -> object:
        own = [
            Announcement(job=self._of(job), task="t", key=replace(key, name=self._of(key.name))) for job, key in given
        ]
        at = NOON + timedelta(minutes=2)
        return self._plain(list(self._store.runs.announce(own, at=at, stale_before=NOON + timedelta(minutes=1))))

    def hand_back(self, given: list[tuple[str, int]]) -> None:
        self._store.runs.hand_back([(self._of(job), tries) for job, tries in given])

    def lapse(self, given: tuple[int, list[str]]) -> None:
        self._store.runs.lapse(self._boot(given[0]), [self._of(job) for job in given[1]])

    def lapse_all(self, given: int) -> None:
        self._store.runs.lapse_all(self._boot(given))

    def take_back(self, given: tuple[str, int, int, str]) -> object:
        job, tries, attempt, lease = given
        held = Held(
            message=replace(MESSAGE, job=self._of(job)),
            lane="till",
            tries=tries,
            not_before=NOON,
            waits_for=self._of(lease),
            reason="lost",
            held_at=NOON,
        )
        return self._plain(list(self._store.holds.take_back({Start(self._of(job), tries, attempt): held})))

    def all(self) -> object:
        runs = self._store.runs.runs([self._of(job) for job in "abc"])
        keys = [self._store.runs.key(self._of(name)) for name in "xy"]
        leases = [self._store.runs.lease(self._of(name)) for name in "xy"]
        held = [None if one is None else (one.job, str(one.boot)[-1], self._numbers[one.fence]) for one in leases]
        kept = sorted(map(str, self._store.runs.under_way([self._of(job) for job in "abc"]).values()))
        leaseless = [one for one in self._store.runs.leaseless(limit=100_000) if one.job.startswith(self._own)]
        waiting = sorted(self._store.holds.find([self._of(job) for job in "abc"]))
        return self._plain((sorted(map(str, runs.values())), keys, held, kept, leaseless, waiting))

    def _ask(self, one: Ask) -> Ask:
        return replace(
            one,
            job=self._of(one.job),
            boot=self._boot(one.boot.int),
            key=None if one.key is None else replace(one.key, name=self._of(one.key.name)),
            lease=None if one.lease is None else replace(one.lease, name=self._of(one.lease.name)),
        )

    def _of(self, name: str) -> str:
        return f"{self._own}-{name}"

    def _boot(self, number: int) -> UUID:
        return UUID(f"{self._own[:-1]}{number}")

    def _plain(self, what: object) -> str:
        return str(what).replace(self._own, "")


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ACTS, min_size=1, max_size=8))
def test_any_acts_come_to_the_same_in_both(postgres_store: PostgresStore, acts: list[tuple[str, Any]]) -> None:
    places = [_Place(MemoryStore()), _Place(postgres_store)]

    for name, given_ in acts:
        in_memory, in_postgres = (place.act(name, given_) for place in places)
        assert in_postgres == in_memory
        after, after_in_postgres = (place.all() for place in places)
        assert after_in_postgres == after

"""The plan of strikes: the same seed draws the same, and nobody is struck who is away already."""

from datetime import timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from nightshift.chaos.plan import MOST, Cast, acts_of, draw
from nightshift.chaos.strike import ON_LINKS, ON_PROCESSES, StrikeKind

WORKERS = ("worker-transaction_sync", "worker-transaction_postprocess", "worker-agent_realtime")
LINKS = ("link to the broker", "link to the store")
OWN = Cast(
    workers=WORKERS, forking=WORKERS[1:2], balancers=("balancer",), servers=("valkey", "postgresql"), links=LINKS
)
GIVEN = Cast(workers=WORKERS, forking=WORKERS[1:2], balancers=("balancer",), links=(*LINKS, "link to the results"))

seeds = st.integers(min_value=-(2**63), max_value=2**63)
spans = st.floats(min_value=30, max_value=36_000).map(lambda seconds: timedelta(seconds=seconds))
casts = st.sampled_from([OWN, GIVEN, Cast(workers=WORKERS[:1])])


@given(casts, seeds, spans)
def test_the_same_seed_draws_the_same_strikes(cast: Cast, seed: int, span: timedelta) -> None:
    assert draw(cast, seed=seed, span=span) == draw(cast, seed=seed, span=span)


@given(casts, seeds, spans)
def test_every_strike_begins_and_ends_inside_the_night(cast: Cast, seed: int, span: timedelta) -> None:
    drawn = draw(cast, seed=seed, span=span)
    assert drawn
    assert all(timedelta(0) < strike.moment <= strike.ends <= span for strike in drawn)
    assert list(drawn) == sorted(drawn, key=lambda strike: strike.moment)
    assert len(drawn) <= MOST


@given(casts, seeds, spans)
def test_no_target_is_struck_while_it_is_away(cast: Cast, seed: int, span: timedelta) -> None:
    drawn = draw(cast, seed=seed, span=span)
    for target in {strike.target for strike in drawn}:
        of_it = [strike for strike in drawn if strike.target == target]
        assert all(later.moment > before.ends for before, later in pairwise(of_it))


@given(seeds, spans)
def test_servers_that_are_given_are_never_killed(seed: int, span: timedelta) -> None:
    drawn = draw(GIVEN, seed=seed, span=span)
    ours = {*GIVEN.workers, *GIVEN.balancers}
    assert {strike.target for strike in drawn if strike.kind in ON_PROCESSES} <= ours
    assert {strike.target for strike in drawn if strike.kind in ON_LINKS} <= set(GIVEN.links)


@settings(max_examples=20)
@given(seeds)
def test_a_night_that_is_long_enough_meets_every_act(seed: int) -> None:
    drawn = draw(OWN, seed=seed, span=timedelta(minutes=10))
    assert {(strike.kind, strike.target) for strike in drawn} == set(acts_of(OWN))


def test_another_seed_draws_other_strikes() -> None:
    minute = timedelta(minutes=1)
    assert len({draw(OWN, seed=seed, span=minute) for seed in range(20)}) == 20


def test_short_nights_of_twenty_seeds_meet_every_act_together() -> None:
    met = {
        (strike.kind, strike.target)
        for seed in range(1, 21)
        for strike in draw(OWN, seed=seed, span=timedelta(minutes=1))
    }
    assert met == set(acts_of(OWN))


def test_a_process_is_stopped_for_shorter_and_for_longer_than_its_presence_and_its_leases_live() -> None:
    stopped = [
        strike.lasts
        for seed in range(1, 21)
        for strike in draw(OWN, seed=seed, span=timedelta(minutes=1))
        if strike.kind is StrikeKind.FREEZE
    ]
    presence, lease = timedelta(seconds=5), timedelta(seconds=15)
    assert any(lasts < presence for lasts in stopped)
    assert any(presence < lasts < lease for lasts in stopped)
    assert any(lasts > lease for lasts in stopped)

"""The call pacer: one grid for all callers, by the slots that it gives away."""

import datetime as dt
import itertools
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

from nightshift.banking.pacing import CallPacer, Reservation
from nightshift.peers import PacerUnavailable

TICK = dt.timedelta(microseconds=2)
OTHER_PROCESS = """
import sys, redis
from nightshift.banking.pacing import CallPacer
with redis.Redis(host="127.0.0.1", port=int(sys.argv[1])) as server:
    pacer = CallPacer(server, "grid", calls_per_second=20, burst=3, ratio=1)
    for _ in range(40):
        print(pacer.reserve().opens_at.isoformat())
"""


def assert_lawful(slots: list[dt.datetime], *, rate: float, burst: int) -> None:
    slots = sorted(slots)
    for first, start in enumerate(slots):
        in_a_second = sum(start <= slot < start + dt.timedelta(seconds=1) for slot in slots[first:])
        assert in_a_second <= math.ceil(rate) + burst
    for earlier, later in zip(slots, slots[burst:], strict=False):
        assert later - earlier >= dt.timedelta(seconds=1 / rate) - TICK


def test_all_threads_and_processes_together_keep_to_one_grid(valkey: redis.Redis, valkey_port: int) -> None:
    pacer = CallPacer(valkey, "grid", calls_per_second=20, burst=3, ratio=1)
    command = [sys.executable, "-c", OTHER_PROCESS, str(valkey_port)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other,
        ThreadPoolExecutor(8) as threads,
    ):
        own = list(threads.map(lambda _: pacer.reserve().opens_at, range(80)))
        assert other.stdout is not None
        slots = own + [dt.datetime.fromisoformat(line.strip()) for line in other.stdout]
    assert len(slots) == 120
    assert_lawful(slots, rate=20, burst=3)


def test_slots_open_one_by_one_so_that_no_herd_wakes(valkey: redis.Redis) -> None:
    pacer = CallPacer(valkey, "grid", calls_per_second=1, ratio=1)
    slots = [pacer.reserve().opens_at for _ in range(30)]
    gaps = [later - earlier for earlier, later in itertools.pairwise(slots)]
    assert all(abs(gap - dt.timedelta(seconds=1)) <= TICK for gap in gaps)


def test_a_burst_opens_at_once_and_the_next_slot_later(valkey: redis.Redis) -> None:
    pacer = CallPacer(valkey, "grid", calls_per_second=0.1, burst=3, ratio=1)
    waits = [pacer.reserve().wait for _ in range(4)]
    assert waits[:3] == [dt.timedelta(0)] * 3
    assert dt.timedelta(0) < waits[3] <= dt.timedelta(seconds=10)


def test_the_ratio_takes_its_share_of_the_limit(valkey: redis.Redis) -> None:
    pacer = CallPacer(valkey, "grid", calls_per_second=1, ratio=0.5)
    first, second = pacer.reserve(), pacer.reserve()
    assert abs(second.opens_at - first.opens_at - dt.timedelta(seconds=2)) <= TICK


def test_a_reservation_far_ahead_is_waited_for_all_the_same(valkey: redis.Redis) -> None:
    slept: list[float] = []
    pacer = CallPacer(valkey, "grid", calls_per_second=0.01, ratio=1, sleep=slept.append)
    for _ in range(3):
        pacer.wait()
    assert len(slept) == 2  # the first slot is open
    assert 90 < slept[0] <= 100
    assert 190 < slept[1] <= 200


def test_grids_of_other_names_are_their_own(valkey: redis.Redis) -> None:
    for key in ("one", "two"):
        assert CallPacer(valkey, key, calls_per_second=0.1).reserve().wait == dt.timedelta(0)


def test_a_grid_that_is_past_is_forgotten_and_a_coming_one_kept(valkey: redis.Redis) -> None:
    pacer = CallPacer(valkey, "grid", calls_per_second=1, ratio=1)
    last: Reservation = [pacer.reserve() for _ in range(10)][-1]
    lives_ms = valkey.pttl("grid")
    assert isinstance(lives_ms, int)
    assert last.wait < dt.timedelta(milliseconds=lives_ms) <= last.wait + dt.timedelta(seconds=3)


def test_without_valkey_there_is_one_clear_error(closed_port: int) -> None:
    with redis.Redis(host="127.0.0.1", port=closed_port) as nobody:
        pacer = CallPacer(nobody, "grid", calls_per_second=12)
        with pytest.raises(PacerUnavailable, match="check that Valkey runs"):
            pacer.reserve()


@pytest.mark.parametrize(
    ("rate", "burst", "ratio"), [(0, 1, 1), (12, 0, 1), (12, 1, 0), (12, 1, 1.2), (math.nan, 1, 1)]
)
def test_numbers_outside_their_range_are_refused(valkey: redis.Redis, rate: float, burst: int, ratio: float) -> None:
    with pytest.raises(ValueError, match="pacer grid"):
        CallPacer(valkey, "grid", calls_per_second=rate, burst=burst, ratio=ratio)

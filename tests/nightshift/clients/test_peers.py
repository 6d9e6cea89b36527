"""Whether to ask a peer again."""

import datetime as dt
import pickle

import httpx2
import pytest

from nightshift.calling import retry_after_of
from nightshift.peers import (
    ConsentEnded,
    PeerError,
    PeerUnavailable,
    RetryRule,
    Tries,
    after_failure,
    after_throttling,
)

RULE = RetryRule()
SECOND = dt.timedelta(seconds=1)


def test_failures_are_asked_again_after_one_two_and_four_seconds_then_no_more() -> None:
    steps = [after_failure(Tries(failed=failed), rule=RULE) for failed in (1, 2, 3, 4)]
    assert [step.wait for step in steps] == [SECOND, 2 * SECOND, 4 * SECOND, None]
    assert "4 times" in steps[-1].reason


@pytest.mark.parametrize("chance", [0.0, 0.5, 0.999])
def test_a_throttled_call_waits_at_least_as_long_as_it_was_asked(chance: float) -> None:
    step = after_throttling(Tries(throttled=1), 3 * SECOND, rule=RULE, chance=chance)
    assert step.wait is not None
    assert 3 * SECOND <= step.wait < 3 * SECOND * 1.25


def test_a_429_that_names_no_wait_waits_a_second() -> None:
    assert after_throttling(Tries(throttled=1), None, rule=RULE, chance=0).wait == SECOND


def test_a_call_is_throttled_a_bounded_number_of_times() -> None:
    steps = [after_throttling(Tries(throttled=n), SECOND, rule=RULE, chance=0) for n in (1, 4, 5)]
    assert [step.wait for step in steps] == [SECOND, SECOND, None]


def test_a_slot_is_not_held_for_a_peer_that_asks_for_an_hour() -> None:
    step = after_throttling(Tries(throttled=1), dt.timedelta(hours=1), rule=RULE, chance=0)
    assert step.wait is None
    assert "3600 s" in step.reason


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("7", 7 * SECOND),
        (" 7 ", 7 * SECOND),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("²", None),
        ("Mon, 30 Nov 2026 01:30:09 GMT", 9 * SECOND),
        ("Mon, 30 Nov 2026 02:30:09 +0100", 9 * SECOND),
        ("Monday, 30-Nov-26 01:30:09 GMT", 9 * SECOND),
        ("Mon, 30 Nov 2026 01:29:00 GMT", 0 * SECOND),
        ("Mon, 31 Nov 2026 01:29:00 GMT", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(text: str, wait: dt.timedelta | None) -> None:
    response = httpx2.Response(429, headers=[(b"Retry-After", text.encode())])
    assert retry_after_of(response, now=dt.datetime(2026, 11, 30, 1, 30, tzinfo=dt.UTC)) == wait


def test_a_number_of_seconds_that_no_clock_can_hold_is_a_long_wait() -> None:
    response = httpx2.Response(429, headers={"Retry-After": "9" * 40})
    assert retry_after_of(response) == dt.timedelta(seconds=10**9)


def test_a_failing_peer_that_names_a_wait_gets_it_if_a_slot_can_be_held_so_long() -> None:
    assert after_failure(Tries(failed=1), 5 * SECOND, rule=RULE).wait == 5 * SECOND
    assert after_failure(Tries(failed=3), SECOND, rule=RULE).wait == 4 * SECOND
    given_up = after_failure(Tries(failed=1), dt.timedelta(hours=1), rule=RULE)
    assert given_up.wait is None
    assert "3600 s" in given_up.reason


def test_an_error_says_who_what_and_the_remedy() -> None:
    error = PeerUnavailable("status 503", peer="aggregator", status=503)
    assert isinstance(error, PeerError)
    assert str(error) == "aggregator: status 503; try again later"
    assert (error.peer, error.status, error.remedy) == ("aggregator", 503, "try again later")


def test_an_error_survives_the_way_from_process_to_process() -> None:
    error = PeerUnavailable("throttled", peer="aggregator", status=429, retry_after=7 * SECOND)
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes
    assert type(copy) is PeerUnavailable
    assert str(copy) == str(error)
    assert (copy.peer, copy.status, copy.retry_after) == ("aggregator", 429, 7 * SECOND)
    ended = ConsentEnded(peer="aggregator", account="a", code="EXPIRED_SESSION", status=401)
    copy = pickle.loads(pickle.dumps(ended))  # noqa: S301  # our own bytes
    assert (type(copy), copy.account, copy.code, copy.retry_after) == (ConsentEnded, "a", "EXPIRED_SESSION", None)

"""What a peer asked for, and whose call a body is."""

from datetime import timedelta
from typing import Any

import pytest

from slackwater.adapters.celery.bodies import NOTHING, Body, current_body, retry_after_of, running


@pytest.mark.parametrize(
    ("given", "wait"),
    [
        (timedelta(seconds=7), timedelta(seconds=7)),
        (7, timedelta(seconds=7)),
        ("7.5", timedelta(seconds=7.5)),
        (None, None),
        ("Wed, 21 Oct", None),
        (float("inf"), None),
    ],
)
def test_a_wait_is_read_as_a_span_or_as_seconds_and_nonsense_is_none(given: Any, wait: timedelta | None) -> None:
    error = ConnectionError("busy")
    error.retry_after = given  # type: ignore[attr-defined]
    assert retry_after_of(error) == wait


def test_an_error_without_a_wait_has_none() -> None:
    assert retry_after_of(ConnectionError("busy")) is None


def test_a_body_is_known_while_it_runs_and_not_after_it() -> None:
    body = Body(lease="account:7", fence=3)
    assert current_body() is None
    seen: list[Body | None] = []

    def run() -> None:
        with running(body):
            seen.append(current_body())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()
    assert seen == [body]
    assert current_body() is None
    assert body.result is NOTHING

"""The test that a body is safe to run twice finds those that are not."""

from typing import Any

import pytest
from celery import Celery

from slackwater.testing import NotIdempotent, run_twice


@pytest.fixture
def app() -> Celery:
    return Celery("twice", broker="memory://", backend="cache+memory://", set_as_current=False)


def test_a_body_that_writes_by_name_is_safe_and_both_results_are_returned(app: Celery) -> None:
    rows: dict[str, int] = {}
    requests: list[tuple[str, bool]] = []

    def body(self: Any, name: str, *, value: int) -> int:
        rows[name] = value
        requests.append((self.request.id, self.request.delivery_info["redelivered"]))
        return len(requests)

    make: Any = app.task(bind=True, name="upsert", shared=False)
    task = make(body)
    twice = run_twice(task, args=["a"], kwargs={"value": 7}, effects=lambda: dict(rows))
    assert (twice.first, twice.second, twice.effects) == (1, 2, {"a": 7})
    [(first, flagged_first), (second, flagged_second)] = requests
    assert first == second
    assert (flagged_first, flagged_second) == (False, True)


def test_a_body_that_appends_is_not_and_both_effects_are_shown(app: Celery) -> None:
    rows: list[str] = []
    make: Any = app.task(name="append", shared=False)
    task = make(lambda_body(rows))
    with pytest.raises(NotIdempotent, match=r"task append is not safe.*\n.*\['a'\]\n.*\['a', 'a'\]"):
        run_twice(task, args=["a"], effects=lambda: list(rows))


def test_what_a_crash_would_lose_can_be_lost_between_the_runs(app: Celery) -> None:
    rows: set[str] = set()
    cache: set[str] = set()

    def body(name: str) -> None:
        if name not in cache:
            cache.add(name)
            rows.add(f"{name}-{len(rows)}")

    make: Any = app.task(name="cached", shared=False)
    task = make(body)
    run_twice(task, args=["a"], effects=lambda: set(rows))
    with pytest.raises(NotIdempotent):
        run_twice(task, args=["a"], effects=lambda: set(rows), between=cache.clear)


def lambda_body(rows: list[str]) -> Any:
    def append(name: str) -> None:
        rows.append(name)

    return append

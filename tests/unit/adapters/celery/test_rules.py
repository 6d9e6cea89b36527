"""What a task says of its delivery, read from its options."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.adapters.celery.conftest import Application

from slackwater import Backoff, Lane, Slackwater, hours, minutes
from slackwater.adapters.celery.rules import arguments_of, rules_of
from slackwater.adapters.memory import MemoryStore
from slackwater.core.admission import WhenTaken
from slackwater.core.delivery import ATTEMPTS
from slackwater.core.retry import RetryPolicy
from slackwater.core.template import NameTemplate
from slackwater.errors import ConfigurationError

Make = Callable[..., Application]


def add(sw: Slackwater, name: str = "sync", **options: Any) -> Any:
    def body(self: Any, account_id: int, *, since: str = "yesterday") -> None:
        """Sync."""

    make: Any = sw.app.task(name=name, shared=False, bind=True, **{"lane": "till", **options})
    make(body)
    return sw.app.tasks[name]


def test_a_task_that_says_nothing_has_three_attempts_and_nothing_else(make_application: Make) -> None:
    sw = make_application().sw
    rules = rules_of(add(sw), sw.lanes)
    assert (rules.key, rules.lease, rules.retry, rules.attempts) == (None, None, None, ATTEMPTS)


def test_options_are_read_as_they_are_written(make_application: Make) -> None:
    sw = make_application().sw
    task = add(
        sw,
        key="sync:{account_id}",
        fresh_for=minutes(30),
        key_taken="wait",
        lease="account:{account_id}",
        lease_taken="replace",
        attempts=5,
        backoff=Backoff(tries=2),
        retry_on=[OSError],
    )
    rules = rules_of(task, sw.lanes)
    assert (rules.key, rules.fresh_for) == (NameTemplate("sync:{account_id}"), minutes(30))
    assert (rules.key_taken, rules.lease_taken, rules.attempts) == (WhenTaken.WAIT, WhenTaken.REPLACE, 5)
    assert rules.retry == RetryPolicy(backoff=Backoff(tries=2), retry_on=(OSError,))
    assert rules.key is not None
    assert rules.key.name(arguments_of(task, (7,), {})) == "sync:7"
    assert arguments_of(task, (7,), {}) == {"account_id": 7, "since": "yesterday"}


def test_a_lanes_policy_holds_where_a_task_has_none(make_application: Make, make_app: Callable[..., Any]) -> None:
    lane = Lane("till", slots=1, backoff=Backoff(tries=7), retry_on=[OSError])
    sw = Slackwater(make_app(), store=MemoryStore(), lanes=[lane])
    inherits, own = add(sw, "inherits"), add(sw, "own", backoff=Backoff(tries=2))
    assert rules_of(inherits, sw.lanes).retry == RetryPolicy(backoff=Backoff(tries=7), retry_on=(OSError,))
    assert rules_of(own, sw.lanes).retry == RetryPolicy(backoff=Backoff(tries=2), retry_on=(OSError,))


@pytest.mark.parametrize(
    ("options", "finding"),
    [
        ({"key": "sync:{konto}"}, "needs konto, which is no parameter of it"),
        ({"key": "sync:{}"}, "put parameters' names into the braces"),
        ({"lease": "account:{account_id"}, "lease=: template"),
        ({"fresh_for": hours(1)}, "fresh_for= says how long a key's success counts; give key= too"),
        ({"key": "k", "fresh_for": 30}, "fresh_for= is a timedelta, not 30"),
        ({"key": "k", "key_taken": "replace"}, "key_taken='replace' is not one of skip, wait, later"),
        ({"lease": "l", "lease_taken": "steal"}, "lease_taken='steal' is not one of skip, wait, later, replace"),
        ({"attempts": 0}, "attempts must be at least 1, not 0"),
        ({"backoff": 3}, "backoff= is a Backoff, not 3"),
        ({"backoff": Backoff(), "retry_on": ["OSError"]}, "retry_on= lists kinds of errors"),
        ({"backoff": Backoff(), "autoretry_for": (OSError,)}, "both retry; keep one of them"),
        ({"key": "k", "lane": None}, "key= and lease= need a lane"),
        ({"lease": "l", "acks_late": False}, "key= and lease= need acks_late"),
    ],
)
def test_what_cannot_be_is_refused_by_the_check_with_the_task_named(
    make_application: Make, options: dict[str, Any], finding: str
) -> None:
    sw = make_application().sw
    add(sw, **options)
    with pytest.raises(ConfigurationError) as refused:
        sw.check()
    [line] = refused.value.findings
    assert line.startswith("task sync: ")
    assert finding in line


def test_a_zero_wait_is_no_mistake(make_application: Make) -> None:
    sw = make_application().sw
    task = add(sw, backoff=Backoff(base=timedelta(0)))
    assert rules_of(task, sw.lanes).retry == RetryPolicy(backoff=Backoff(base=timedelta(0)))

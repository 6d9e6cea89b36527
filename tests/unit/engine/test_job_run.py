"""Asking and telling a store that is away for a while."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.unit.engine.conftest import NOON

from slackwater.adapters.memory import MemoryStore
from slackwater.core.admission import Admit, Ask, LeaseRule, Wait
from slackwater.core.job import JobState
from slackwater.engine.job_run import JobRuns
from slackwater.errors import StoreUnavailable
from slackwater.ports import Ending, Finish

BOOT = UUID(int=1)
LEASE = LeaseRule(name="account:7", lives_for=timedelta(seconds=15))


@dataclass
class Away:
    """Gives a store that is away for so many calls."""

    calls: int
    store: MemoryStore = field(default_factory=MemoryStore)
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> Any:
        if self.calls > 0:
            self.calls -= 1
            raise StoreUnavailable("the store is away", where="here")
        return self.store

    def runs(self) -> JobRuns:
        return JobRuns(store=self, patience=timedelta(seconds=3), pause=self.slept.append, full_per_cause=10)


def ask(job: str = "job", **options: Any) -> Ask:
    values: dict[str, Any] = {"tries": 0, "redelivered": True}
    return Ask(job=job, task="sync", boot=BOOT, **values | options)


def test_what_only_counts_attempts_starts_unasked() -> None:
    away = Away(calls=1)
    assert away.runs().begin(ask()) is None
    assert not away.slept


def test_what_has_a_lease_waits_in_its_slot_until_it_can_ask() -> None:
    away = Away(calls=3)
    begun = away.runs().begin(ask(lease=LEASE))
    assert begun is not None
    assert isinstance(begun.admission, Admit)
    assert away.slept == [0.2, 0.4, 0.8]


def test_after_its_patience_it_gives_up() -> None:
    away = Away(calls=100)
    with pytest.raises(StoreUnavailable):
        away.runs().begin(ask(lease=LEASE))
    assert sum(away.slept) >= 3
    assert max(away.slept) <= 2


@pytest.mark.parametrize(("lease", "gives_up"), [("account:7", True), (None, False)])
def test_an_end_that_nothing_depends_on_is_left_untold(lease: str | None, gives_up: bool) -> None:
    finish = Finish(job="job", tries=0, state=JobState.DONE, ended_at=NOON, lease=lease)
    runs = Away(calls=100).runs()
    if gives_up:
        with pytest.raises(StoreUnavailable):
            runs.finish(finish)
    else:
        runs.finish(finish)


def test_an_ending_is_told_once_the_store_is_back() -> None:
    away = Away(calls=2)
    ending = Ending(job="job", state=JobState.DEAD, reason="poison", task="sync", lane="till", at=NOON)
    away.runs().end(ending)
    assert away.store.endings.find(["job"]) == {"job": ending}


def test_a_job_has_begun_once_a_body_was_admitted_and_stays_so_while_its_next_try_waits() -> None:
    away = Away(calls=0)
    runs = away.runs()
    assert not runs.has_begun("job")
    away.store.runs.begin([ask("other", lease=LEASE, redelivered=False)])
    waits = runs.begin(ask(redelivered=False, lease=LEASE))
    assert waits is not None
    assert isinstance(waits.admission, Wait)
    assert not runs.has_begun("job"), "it was delivered, and waits"
    begun = runs.begin(ask(redelivered=False, lease=replace(LEASE, name="account:8")))
    assert begun is not None
    assert isinstance(begun.admission, Admit)
    assert runs.has_begun("job")
    next_try = runs.begin(ask(redelivered=False, lease=LEASE, tries=1))
    assert next_try is not None
    assert isinstance(next_try.admission, Wait)
    assert runs.has_begun("job"), "its first try has, though its next one has no attempt yet"

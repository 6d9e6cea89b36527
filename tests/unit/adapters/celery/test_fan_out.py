"""Fan-outs from bodies that run in this process."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from tests.unit.adapters.celery.conftest import NOON, Application

from slackwater import FanOut, JobState, Published, Tempo
from slackwater.adapters.memory import MemoryStore
from slackwater.core.job import Mark

Make = Callable[..., Application]


class Swept:
    """A parent job's body, and what it published."""

    def __init__(self, application: Application, items: list[Any]) -> None:
        self.application, self.items = application, items
        self.found: list[FanOut] = []
        self.child = application.add("child", _child)
        self.task = application.add("sweep", self._body())

    def _body(self) -> Callable[[Any], None]:
        def sweep(_task: Any) -> None:
            self.found.append(self.application.sw.fan_out(self.child, self.items))

        return sweep

    def run(self, job: str, **mark: Any) -> FanOut:
        self.application.deliver(self.task, job=job, mark=Mark(published_at=NOON, **mark) if mark else None)
        return self.found[-1]


def _child(_task: Any, number: int = 0, **_: int) -> None:
    """Do nothing."""


def test_a_parent_that_runs_twice_gives_its_children_the_same_ids(make_application: Make) -> None:
    swept, job = Swept(make_application(), [(1,), (2,), {"number": 3}]), str(uuid4())
    first, again, other = swept.run(job), swept.run(job), swept.run(str(uuid4()))
    assert len(set(first.published)) == 3
    assert first == again
    assert not set(first.published) & set(other.published)


def test_each_job_of_an_occurrence_is_known_by_id_before_it_is_published(make_application: Make) -> None:
    store = MemoryStore()
    application, occurrence = make_application(store), uuid4()
    known: list[bool] = []

    def listen(batch: Any) -> None:
        rows = set(store.fan_outs.unsettled(occurrence, after="", limit=100))
        known.extend(one.job in rows for one in batch)

    application.sw.on_published(listen)
    swept = Swept(application, [(number,) for number in range(25)])
    start_by = application.sw.clock.calendar() + timedelta(hours=1)
    found = swept.run(str(uuid4()), occurrence=occurrence, start_by=start_by)
    assert len(found.published) == 25
    assert known == [True] * 25


def test_what_is_not_in_an_occurrence_leaves_no_rows(make_application: Make) -> None:
    store = MemoryStore()
    Swept(make_application(store), [(1,)]).run(str(uuid4()))
    assert not store.fan_outs._owner


def test_a_window_that_closes_in_the_middle_ends_the_rest(make_application: Make) -> None:
    store = MemoryStore()
    application, occurrence = make_application(store), uuid4()
    swept = Swept(application, [(number,) for number in range(25)])
    start_by = application.sw.clock.calendar() + timedelta(hours=1)
    heard: list[Published] = []

    def listen(batch: Any) -> None:
        heard.extend(batch)
        if len(heard) == 20:
            turn_clock(application, start_by + timedelta(seconds=1))

    application.sw.on_published(listen)
    found = swept.run(str(uuid4()), occurrence=occurrence, start_by=start_by, elastic=True)
    assert (len(found.published), len(found.expired)) == (20, 5)
    assert [one.job for one in heard] == list(found.published)
    assert {(one.mark.start_by, one.mark.occurrence, one.mark.elastic) for one in heard} == {
        (start_by, occurrence, True)
    }
    assert {one.state for one in store.endings.find(found.expired).values()} == {JobState.EXPIRED}
    assert {application.status(job) for job in found.expired} == {"REVOKED"}
    assert set(store.fan_outs.unsettled(occurrence, after="", limit=100)) == {*found.published, *found.expired}


@pytest.mark.parametrize("count", [0, 1, 10, 11])
def test_every_item_is_published_once_whatever_the_batches(make_application: Make, count: int) -> None:
    application = make_application()
    heard: list[int] = []
    application.sw.on_published(lambda batch: heard.append(len(batch)))
    found = Swept(application, [(number,) for number in range(count)]).run(str(uuid4()))
    assert len(set(found.published)) == sum(heard) == count


def turn_clock(application: Application, instant: datetime) -> None:
    """Let it be later for everyone who asks this application's clock."""
    now = datetime.now(UTC)
    later = Tempo(run_origin=now, calendar_origin=instant, rate=1.0)
    object.__setattr__(application.sw.clock, "tempo", later)

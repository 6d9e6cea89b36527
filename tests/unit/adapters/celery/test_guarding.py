"""The guard in front of bodies that run in this process."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.adapters.celery.conftest import NOON, Application, Refusing

from slackwater import Lane, Slackwater, hours
from slackwater.adapters.celery.guarding import adopt
from slackwater.adapters.memory import MemoryStore
from slackwater.core.job import Mark

Make = Callable[..., Application]


@pytest.mark.parametrize("mark", [None, Mark(published_at=NOON), Mark(published_at=NOON, lane="till", elastic=True)])
def test_a_job_without_a_start_by_runs_without_asking_the_store(make_application: Make, mark: Mark | None) -> None:
    ran: list[int] = []
    application = make_application(Refusing())
    job = application.deliver(application.add("serve", noting(ran)), 7, mark=mark)
    assert (ran, application.status(job)) == ([7], "SUCCESS")


def test_a_job_in_time_runs_without_asking_the_store(make_application: Make) -> None:
    ran: list[int] = []
    application = make_application(Refusing())
    mark = Mark(published_at=NOON, start_by=application.sw.clock.calendar() + hours(1))
    application.deliver(application.add("serve", noting(ran)), 7, mark=mark)
    assert ran == [7]


def test_a_late_job_does_not_run(make_application: Make) -> None:
    ran: list[int] = []
    store = MemoryStore()
    application = make_application(store)
    job = application.deliver(application.add("serve", noting(ran)), 7, mark=Mark(published_at=NOON, start_by=NOON))
    assert (ran, application.status(job)) == ([], "REVOKED")
    assert store.endings.find([job])[job].reason == "late"


def test_a_task_is_adopted_once(make_application: Make) -> None:
    application = make_application()
    task = application.add("serve", noting([]))
    adopted = type(task)
    adopt(task, task.deliveries_)
    assert type(task) is adopted


def test_tasks_that_were_there_before_slackwater_are_guarded_too(make_app: Any) -> None:
    app = make_app()
    add: Any = app.task(name="old", shared=False, bind=True)
    ran: list[int] = []
    add(noting(ran))
    assert app.tasks["old"]
    application = Application(Slackwater(app, store=MemoryStore(), lanes=[Lane("till", slots=1)]))
    application.deliver(app.tasks["old"], 7, mark=Mark(published_at=NOON, start_by=NOON))
    assert not ran


def noting(ran: list[int]) -> Callable[..., None]:
    def body(_task: Any, number: int) -> None:
        ran.append(number)

    return body

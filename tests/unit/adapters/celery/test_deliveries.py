"""How deliveries end, as the store is told it; their bodies run in this process."""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest
from celery.app.trace import build_tracer
from celery.exceptions import Reject
from tests.unit.adapters.celery.conftest import Application

from slackwater import hours
from slackwater.adapters.memory import MemoryStore
from slackwater.core.admission import Ask, LeaseRule
from slackwater.core.job import JobState
from slackwater.core.message import Held
from slackwater.errors import StaleFence
from slackwater.ports import Finish

Make = Callable[..., Application]
KEY = "effect:7"


@dataclass
class Told:
    """Notes each end that the store is told of."""

    store: MemoryStore
    finishes: list[Finish] = field(default_factory=list)

    def __post_init__(self) -> None:
        tell = self.store.runs.finish

        def finish(finishes: Sequence[Finish]) -> None:
            self.finishes.extend(finishes)
            tell(finishes)

        self.store.runs.finish = finish  # type: ignore[method-assign]


def keyed(application: Application, body: Callable[..., Any], **options: Any) -> Any:
    app: Any = application.sw.app
    app.task(name="keyed", lane="till", shared=False, bind=True, key="effect:{effect}", **options)(body)
    return app.tasks["keyed"]


def leased(application: Application) -> Any:
    app: Any = application.sw.app
    app.task(name="leased", lane="till", shared=False, bind=True, lease="account:{effect}")(reject)
    return app.tasks["leased"]


def take_lease(store: MemoryStore, job: str) -> None:
    lease = LeaseRule(name="account:7", lives_for=hours(1))
    store.runs.begin([Ask(job=job, tries=0, task="leased", boot=uuid4(), redelivered=False, lease=lease)])


def deliver(application: Application, task: Any, *, redelivered: bool = False) -> str:
    job = str(uuid4())
    come(application, task, job, redelivered=redelivered)
    return job


def come(application: Application, task: Any, job: str, *, redelivered: bool) -> Any:
    """Do what a worker does with one delivery of a job; return how its body ended."""
    delivery = {"routing_key": "till", "redelivered": redelivered}
    request = {"id": job, "task": task.name, "args": (7,), "kwargs": {}, "delivery_info": delivery, "retries": 0}
    task.__trace__ = build_tracer(task.name, task, app=application.sw.app)
    return task.__trace__(job, (7,), {}, request)[1]


def retry_with_what_no_serializer_takes(task: Any, effect: Any) -> None:
    raise task.retry(countdown=0, args=[object()])


def reject_for_now(_task: Any, effect: Any) -> None:
    raise Reject("not now", requeue=True)


def reject(_task: Any, effect: Any) -> None:
    raise Reject("not this one", requeue=False)


def test_a_next_try_that_cannot_be_encoded_fails_its_job_and_its_key(make_application: Make) -> None:
    store = MemoryStore()
    application = make_application(store)
    job = deliver(application, keyed(application, retry_with_what_no_serializer_takes))

    key = store.runs.key(KEY)
    assert key is not None
    assert (key.job, key.state) == (job, JobState.FAILED)
    assert store.runs.runs([job])[job].state is JobState.FAILED
    letter = store.dead_letters.get(job)
    assert letter is not None
    assert (letter.state, letter.cause) == (JobState.FAILED, "EncodeError")
    assert store.runs.under_way([job]) == {}


def test_a_body_that_rejects_its_message_for_good_has_failed(make_application: Make) -> None:
    store = MemoryStore()
    application = make_application(store)
    job = deliver(application, keyed(application, reject))

    assert store.runs.runs([job])[job].state is JobState.FAILED
    letter = store.dead_letters.get(job)
    assert letter is not None
    assert letter.cause == "Reject"


def test_a_job_whose_attempts_are_spent_tells_its_end_once(make_application: Make) -> None:
    store = MemoryStore()
    told = Told(store)
    application = make_application(store)
    job = deliver(application, keyed(application, reject, attempts=1), redelivered=True)

    assert [(one.job, one.state, one.key) for one in told.finishes] == [(job, JobState.DEAD, KEY)]
    assert application.status(job) == "FAILURE"
    assert store.runs.runs([job])[job].state is JobState.DEAD


def test_a_body_that_was_fenced_out_goes_back_and_its_next_start_is_no_new_attempt(make_application: Make) -> None:
    store, ran = MemoryStore(), []

    def fenced_out_once(_task: Any, effect: Any) -> None:
        ran.append(effect)
        if len(ran) == 1:
            raise StaleFence("key:effect:7", 1)

    application = make_application(store)
    task, job = keyed(application, fenced_out_once, attempts=1), str(uuid4())
    ended: Any = come(application, task, job, redelivered=False).retval
    assert (type(ended), ended.requeue, type(ended.reason)) == (Reject, True, StaleFence)
    run = store.runs.runs([job])[job]
    assert (run.state, run.attempts, run.handed_back) == (JobState.QUEUED, 1, True)
    assert store.runs.lease("key:effect:7") is None
    assert application.status(job) == "STARTED", "nothing is told of an end"

    come(application, task, job, redelivered=True)
    assert (application.status(job), len(ran)) == ("SUCCESS", 2)
    run = store.runs.runs([job])[job]
    assert (run.state, run.attempts) == (JobState.DONE, 1)


@pytest.mark.parametrize("end", ["SUCCESS", "FAILURE", "REVOKED"])
def test_a_delivery_that_waits_says_so_over_no_end_that_came_meanwhile(make_application: Make, end: str) -> None:
    """A copy of it, released from the store, ran to its end before this one was kept."""
    store = MemoryStore()
    application = make_application(store)
    backend: Any = application.sw.app.backend
    task, job, keep = leased(application), str(uuid4()), store.holds.hold

    def ends_and_keep(held: Sequence[Held]) -> None:
        backend.store_result(job, None, end)
        keep(held)

    take_lease(store, "another")
    store.holds.hold = ends_and_keep  # type: ignore[method-assign]
    come(application, task, job, redelivered=False)
    assert store.holds.find([job])
    assert application.status(job) == end


def test_a_delivery_that_waits_for_another_job_says_so(make_application: Make) -> None:
    store = MemoryStore()
    application = make_application(store)
    task, job = leased(application), str(uuid4())
    take_lease(store, "another")
    come(application, task, job, redelivered=False)
    assert application.status(job) == "HELD"


def test_a_copy_that_waits_for_its_own_job_says_nothing_of_a_body_that_runs(make_application: Make) -> None:
    store = MemoryStore()
    application = make_application(store)
    task, job = leased(application), str(uuid4())
    application.sw.app.backend.mark_as_started(job)
    take_lease(store, job)
    come(application, task, job, redelivered=False)
    assert store.holds.find([job])
    assert application.status(job) == "STARTED"


def test_why_a_next_try_was_not_sent_can_be_sent_to_the_worker(make_application: Make) -> None:
    class Unreadable(ConnectionError):
        def __init__(self, *, where: str) -> None:
            super().__init__(where)

    def unsent(task: Any, effect: Any) -> None:
        hands = task.deliveries_.successors
        hands.hold(refused)

    def refused() -> None:
        raise Unreadable(where="here")

    application = make_application()
    ended: Any = come(application, keyed(application, unsent), str(uuid4()), redelivered=False).retval
    assert ended.requeue
    assert "here" in str(pickle.loads(pickle.dumps(ended)).reason)  # noqa: S301


def test_a_body_that_hands_its_delivery_back_itself_is_an_attempt(make_application: Make) -> None:
    """Or one that always does so would go round for ever."""
    store = MemoryStore()
    application = make_application(store)
    task, job = keyed(application, reject_for_now, attempts=1), str(uuid4())
    come(application, task, job, redelivered=False)
    come(application, task, job, redelivered=True)
    assert store.runs.runs([job])[job].state is JobState.DEAD

"""How deliveries end, as the store is told it; their bodies run in this process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from celery.app.trace import build_tracer
from celery.exceptions import Reject
from tests.unit.adapters.celery.conftest import Application

from slackwater.adapters.memory import MemoryStore
from slackwater.core.job import JobState
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


def deliver(application: Application, task: Any, *, redelivered: bool = False) -> str:
    job = str(uuid4())
    delivery = {"routing_key": "till", "redelivered": redelivered}
    request = {"id": job, "task": task.name, "args": (7,), "kwargs": {}, "delivery_info": delivery, "retries": 0}
    task.__trace__ = build_tracer(task.name, task, app=application.sw.app)
    task.__trace__(job, (7,), {}, request)
    return job


def retry_with_what_no_serializer_takes(task: Any, effect: Any) -> None:
    raise task.retry(countdown=0, args=[object()])


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

"""The contract of results, over a backend that is read in bulk and one that is read job by job."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery
from celery.exceptions import TaskRevokedError
from tests.contract.brokers.links import PrivateValkey, free_port

from slackwater.adapters.brokers.results import say_unless_ended
from slackwater.core.job import JobState
from slackwater.errors import BrokerUnavailable
from slackwater.inspection import JobStates


@pytest.fixture(params=["valkey", "sqlite"])
def app(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Celery]:
    if request.param == "valkey":
        valkey: PrivateValkey = request.getfixturevalue("valkey")
        url = f"redis://127.0.0.1:{valkey.port}/1"
    else:
        url = f"db+sqlite:///{tmp_path}/results.sqlite"
    application = Celery("results", broker="memory://", backend=url, set_as_current=False)
    yield application
    application.close()


def test_every_state_of_celery_has_ours(app: Celery) -> None:
    backend = app.backend
    backend.mark_as_done("done", {"total": "12.90"})
    backend.mark_as_failure("failed", ValueError("no total"))
    backend.mark_as_started("running")
    backend.mark_as_retry("retried", ConnectionError("peer"))
    backend.store_result("held", None, "HELD")
    backend.store_result("its own", {"page": 3}, "PROGRESS")
    backend.mark_as_failure("expired", TaskRevokedError("expired: late"), state="REVOKED")
    backend.mark_as_revoked("revoked", "by a person")

    jobs = ["done", "failed", "running", "retried", "held", "its own", "expired", "revoked", "never heard of"]

    assert JobStates(app).states(jobs) == {
        "done": JobState.DONE,
        "failed": JobState.FAILED,
        "running": JobState.RUNNING,
        "retried": JobState.QUEUED,
        "held": JobState.HELD,
        "its own": JobState.RUNNING,
        "expired": JobState.EXPIRED,
        "revoked": JobState.REVOKED,
    }


def test_a_job_that_celery_itself_let_expire_is_expired(app: Celery) -> None:
    app.backend.mark_as_revoked("job", "expired")

    assert JobStates(app).states(["job"]) == {"job": JobState.EXPIRED}


def test_a_state_is_read_anew_each_time(app: Celery) -> None:
    results = JobStates(app)
    app.backend.mark_as_started("job-read-twice")
    first = results.states(["job-read-twice"])
    app.backend.mark_as_done("job-read-twice", None)

    assert first == {"job-read-twice": JobState.RUNNING}
    assert results.states(["job-read-twice"]) == {"job-read-twice": JobState.DONE}


def test_no_jobs_have_no_states(app: Celery) -> None:
    assert JobStates(app).states([]) == {}


def test_more_jobs_than_a_page_are_all_read(valkey: PrivateValkey) -> None:
    app = Celery("results", broker="memory://", backend=f"redis://127.0.0.1:{valkey.port}/2", set_as_current=False)
    jobs = [str(uuid4()) for _ in range(1_001)]
    for job in (jobs[0], jobs[-1]):
        app.backend.mark_as_done(job, None)

    assert JobStates(app).states(jobs) == {jobs[0]: JobState.DONE, jobs[-1]: JobState.DONE}
    app.close()


def test_an_error_whose_module_is_not_here_is_a_failure_all_the_same(valkey: PrivateValkey) -> None:
    app = Celery("results", broker="memory://", backend=f"redis://127.0.0.1:{valkey.port}/3", set_as_current=False)
    backend: Any = app.backend
    backend.set(
        backend.get_key_for_task("job"),
        backend.encode({"status": "FAILURE", "result": {"exc_type": "Gone", "exc_module": "no.such.module"}}),
    )

    assert JobStates(app).states(["job"]) == {"job": JobState.FAILED}
    app.close()


def test_a_backend_that_is_down_is_unavailable_and_named_without_its_password() -> None:
    url = f"redis://:secret@127.0.0.1:{free_port()}/0"
    app = Celery("results", broker="memory://", backend=url, set_as_current=False)

    with pytest.raises(BrokerUnavailable, match="result_backend") as caught:
        JobStates(app).states(["job"])

    assert "secret" not in str(caught.value)
    app.close()


@pytest.mark.parametrize("told", ["STARTED", "RETRY", "HELD", None])
def test_a_job_that_waits_is_told_as_waiting_whatever_was_told_before(app: Celery, told: str | None) -> None:
    if told is not None:
        app.backend.store_result("job", None, told)
    assert say_unless_ended(app.backend, "job", "HELD", request=None)
    assert JobStates(app).states(["job"]) == {"job": JobState.HELD}


@pytest.mark.parametrize("end", ["SUCCESS", "FAILURE", "REVOKED"])
def test_that_a_job_waits_is_not_written_over_its_end(app: Celery, end: str) -> None:
    app.backend.store_result("job", 7 if end == "SUCCESS" else TaskRevokedError("expired: late"), end)
    before = app.backend.get_task_meta("job", cache=False)
    assert not say_unless_ended(app.backend, "job", "HELD", request=None)
    assert repr(app.backend.get_task_meta("job", cache=False)) == repr(before)


@pytest.mark.parametrize("app", ["valkey"], indirect=True)
@pytest.mark.parametrize("end", ["SUCCESS", "FAILURE"])
def test_an_end_that_comes_just_before_it_is_written_stays(
    app: Celery, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend: Any = app.backend
    backend.mark_as_started("job")
    read = backend.decode
    ends = iter([lambda: backend.client.set(backend.get_key_for_task("job"), backend.encode({"status": end}))])

    def decode(told: Any) -> Any:
        # What was there has been read, and nothing written yet.
        next(ends, lambda: None)()
        return read(told)

    monkeypatch.setattr(backend, "decode", decode)
    assert not say_unless_ended(backend, "job", "HELD", request=None)
    assert read(backend.client.get(backend.get_key_for_task("job"))) == {"status": end}

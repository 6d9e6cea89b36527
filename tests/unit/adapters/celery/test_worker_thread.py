"""A thread of ours goes on, whatever its act raises."""

import threading
from datetime import timedelta

from structlog.testing import capture_logs

from slackwater.adapters.celery.worker_thread import WorkerThread
from slackwater.errors import StoreUnavailable


def test_it_goes_on_after_an_outage_and_after_a_mistake_and_ends_when_it_is_stopped() -> None:
    answers: list[Exception | None] = [StoreUnavailable("away", where="here"), ZeroDivisionError("ours"), None]
    acted: list[int] = []
    all_done = threading.Event()

    def act() -> None:
        acted.append(len(acted))
        error = answers.pop(0) if answers else None
        if not answers:
            all_done.set()
        if error is not None:
            raise error

    thread = WorkerThread(name="test", every=timedelta(seconds=0.01), act=act)
    with capture_logs() as logs:
        thread.start()
        assert all_done.wait(30)
        thread.stop()
    assert len(acted) >= 3
    assert [line["event"] for line in logs][:2] == ["cannot work, keeps trying", "thread failed, goes on"]
    assert not [each for each in threading.enumerate() if each.name == "slackwater-test"]


def test_news_makes_it_act_at_once() -> None:
    acted = threading.Semaphore(0)
    thread = WorkerThread(name="test", every=timedelta(hours=1), act=acted.release)
    thread.start()
    assert acted.acquire(timeout=30)
    thread.news.set()
    assert acted.acquire(timeout=30)
    thread.stop()

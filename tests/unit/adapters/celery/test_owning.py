"""A worker's patience with its result backend; what the application has set itself stays."""

from typing import Any

from celery import Celery

from slackwater.adapters.celery.owning import wait_for_results


def application(**settings: object) -> Any:
    app = Celery("patience", broker="memory://", backend="cache+memory://", set_as_current=False)
    app.conf.update(settings)
    return app


def test_a_worker_waits_for_a_result_backend_that_is_away_also_one_that_was_made_before() -> None:
    app = application()
    made = app.backend
    assert not made.always_retry
    wait_for_results(app)
    assert made.always_retry
    assert app.conf.result_backend_always_retry
    assert made.base_sleep_between_retries_ms <= made.max_sleep_between_retries_ms <= 2_000


def test_what_the_application_has_set_itself_stays() -> None:
    app = application(result_backend_always_retry=False, result_backend_max_sleep_between_retries_ms=9_000)
    wait_for_results(app)
    assert not app.backend.always_retry
    assert app.backend.max_sleep_between_retries_ms == 9_000

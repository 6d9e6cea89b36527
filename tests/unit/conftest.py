"""Celery applications without a socket: kombu's broker in memory, results in memory."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery, _state


@pytest.fixture
def make_app(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Celery]]:
    """Make an application; its arguments are settings. Tasks that other tests share with all applications stay out."""
    shared: set[Any] = vars(_state)["_on_app_finalizers"]
    finalizers = {each for each in shared if each.__module__.startswith("celery.")}
    monkeypatch.setattr(_state, "_on_app_finalizers", finalizers)
    apps: list[Celery] = []

    def make(**settings: Any) -> Celery:
        app = Celery(f"app-{uuid4()}", set_as_current=False)
        app.conf.update({"broker_url": "memory://", "result_backend": "cache+memory://", **settings})
        apps.append(app)
        return app

    yield make
    for app in apps:
        app.close()

"""Celery applications without a socket: kombu's broker in memory, results in memory."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery, _state


@pytest.fixture(autouse=True)
def only_builtin_tasks_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep out the tasks that other tests' modules share with every application of this process."""
    shared: set[Any] = vars(_state)["_on_app_finalizers"]
    builtin = {each for each in shared if each.__module__ == "celery.app.builtins"}
    assert builtin
    monkeypatch.setattr(_state, "_on_app_finalizers", builtin)


@pytest.fixture
def make_app() -> Iterator[Callable[..., Celery]]:
    """Make an application; its arguments are settings."""
    apps: list[Celery] = []

    def make(**settings: Any) -> Celery:
        app = Celery(f"app-{uuid4()}", set_as_current=False)
        app.conf.update({"broker_url": "memory://", "result_backend": "cache+memory://", **settings})
        apps.append(app)
        return app

    yield make
    for app in apps:
        app.close()

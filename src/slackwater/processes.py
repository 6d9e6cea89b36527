"""The processes of an application on one machine, as children of a supervisor."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from slackwater.local import Child, Servers

SOFT_STOP = timedelta(seconds=20)


def environment(servers: Servers, *, base: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which an application finds its servers (variables that Celery and we read)."""
    return {
        **base,
        "CELERY_BROKER_URL": servers.broker_url,
        "CELERY_RESULT_BACKEND": servers.backend_url,
        "SLACKWATER_STORE_URL": servers.store_url,
        "PYTHONUNBUFFERED": "1",
    }


def unread_backend(environ: Mapping[str, str]) -> str | None:
    """Say that a result backend in the environment is not used by a run on this machine; None where there is none."""
    if not environ.get("CELERY_RESULT_BACKEND"):
        return None
    return (
        "CELERY_RESULT_BACKEND is not used: results are kept on the broker, "
        "or on a Valkey of this run's where the broker is a RabbitMQ"
    )


def balancer(app: str, *, env: Mapping[str, str], logs: Path) -> Child:
    """Describe the balancer's process."""
    return python("balancer", ["slackwater", "-v", "-A", app, "balancer"], env=env, logs=logs)


def workers(app: str, lanes: Iterable[str], *, env: Mapping[str, str], logs: Path) -> list[Child]:
    """Describe a worker process for each lane."""
    return [
        python(f"worker-{lane}", ["slackwater", "-v", "-A", app, "worker", lane], env=env, logs=logs) for lane in lanes
    ]


def python(name: str, words: Sequence[str], *, env: Mapping[str, str], logs: Path) -> Child:
    """Describe a process that runs a module of this Python (`python -m WORDS`)."""
    return Child(
        name=name,
        argv=(sys.executable, "-m", *words),
        env=dict(env),
        log_path=logs / f"{name}.log",
        stop_signal=signal.SIGTERM,
        stop_within=SOFT_STOP,
    )

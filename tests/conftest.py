"""What every test may ask for, and what every session must leave behind: nothing that runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import psutil  # type: ignore[import-untyped]
import pytest
from tests.servers import (
    fresh_valkey_url,
    migrated_database,
    migrated_url,
    postgres_server,
    postgres_url,
    rabbitmq_node,
    rabbitmq_prefix,
    rabbitmq_url,
    server_folder,
    server_supervisor,
    valkey_databases,
    valkey_url,
)
from tests.spreading import pytest_collection_modifyitems, pytest_xdist_make_scheduler

from slackwater.adapters.embedded import processes

__all__ = [
    "fresh_valkey_url",
    "migrated_database",
    "migrated_url",
    "postgres_server",
    "postgres_url",
    "pytest_collection_modifyitems",
    "pytest_xdist_make_scheduler",
    "rabbitmq_node",
    "rabbitmq_prefix",
    "rabbitmq_url",
    "server_folder",
    "server_supervisor",
    "valkey_databases",
    "valkey_url",
]

_GONE_WITHIN = timedelta(seconds=5)
_PYTHONS_OWN = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
"""Helpers of this process's own; forks of the latter bear its words, but are not its children."""


@pytest.fixture(scope="session", autouse=True)
def no_process_left_behind() -> Iterator[None]:
    """Fail the session if a process that it started, directly or not, runs on after its last fixture was torn down."""
    session = uuid4().hex
    os.environ.update(processes.mark_for(session, os.environ))
    yield
    started = {each.pid: each for each in (*processes.marked(session), *psutil.Process().children(recursive=True))}
    ours = [each for each in started.values() if each.pid != os.getpid() and not _pythons_own(each)]
    left = processes.wait_until_gone(ours, within=_GONE_WITHIN)
    named = [_described(each) for each in left]
    processes.end(left, term_within=timedelta(seconds=1))
    assert not named, f"left running (and ended now): {named}"


def _pythons_own(process: psutil.Process) -> bool:
    try:
        return process.ppid() == os.getpid() and any(name in _described(process) for name in _PYTHONS_OWN)
    except psutil.NoSuchProcess:
        return True


def _described(process: psutil.Process) -> str:
    try:
        return f"{process.pid} {' '.join(process.cmdline())[:160]}"
    except psutil.Error:
        return f"{process.pid} (gone)"

"""What every test may ask for, and what every session must leave behind: nothing that runs."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
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

from slackwater.adapters.embedded import processes

__all__ = [
    "fresh_valkey_url",
    "migrated_database",
    "migrated_url",
    "postgres_server",
    "postgres_url",
    "rabbitmq_node",
    "rabbitmq_prefix",
    "rabbitmq_url",
    "server_folder",
    "server_supervisor",
    "valkey_databases",
    "valkey_url",
]

_NIGHTS, _CASES = "tests/nightshift/night/", "tests/integration/cases/"
"""Long tests, each with processes of its own."""
_ENDS_BY = {_NIGHTS: 0.75, _CASES: 0.85}
"""After which part of all the last of them begins: who began a night at the end would be waited for."""
_TOGETHER = ("tests/integration/cli/", "tests/nightshift/documents/", "tests/nightshift/tasks/")
"""What shares something for a whole session that takes long to start."""
_GONE_WITHIN = timedelta(seconds=5)
_PYTHONS_OWN = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
"""Helpers of this process's own; forks of the latter bear its words, but are not its children."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where tests run in several processes: mix what computes and what waits; keep together what shares servers."""
    if not hasattr(config, "workerinput"):
        return
    for item in items:
        if item.get_closest_marker("xdist_group") is None and not item.nodeid.startswith((_NIGHTS, _CASES)):
            module = item.nodeid.partition("::")[0]
            item.add_marker(pytest.mark.xdist_group(next(filter(module.startswith, _TOGETHER), module)))
    kinds: dict[str, list[list[pytest.Item]]] = {}
    for unit in _units(items):
        kinds.setdefault(next(filter(unit[0].nodeid.startswith, _ENDS_BY), ""), []).append(unit)
    places = [
        (_ENDS_BY.get(kind, 1.0) * number / len(units), unit)
        for kind, units in kinds.items()
        for number, unit in enumerate(units)
    ]
    items[:] = [item for _, unit in sorted(places, key=lambda one: one[0]) for item in unit]


def _units(items: Sequence[pytest.Item]) -> Collection[list[pytest.Item]]:
    """Return the items by what one process runs of them in one go."""
    units: dict[str, list[pytest.Item]] = {}
    for item in items:
        group = item.get_closest_marker("xdist_group")
        units.setdefault(item.nodeid if group is None else str(group.args[0]), []).append(item)
    return units.values()


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

"""How tests are spread over several processes: what shares servers stays together, what waits is mixed with the rest.

pytest-xdist's own `loadgroup` marks a test's group on its id, which pytest 9.2 no longer lets it: each test would go
wherever a process is free, and each process would start each of the shared servers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

LONG = ("tests/nightshift/night/", "tests/integration/cases/")
"""Folders of long tests, each with processes of its own: every one is a group by itself."""
ENDS_BY = {LONG[0]: 0.55, LONG[1]: 0.75}
"""After which part of all the last of them begins: who began a night at the end would be waited for."""
TOGETHER = {
    "tests/integration/celery/": ("[valkey", "[rabbitmq"),
    "tests/integration/cli/": (),
    "tests/nightshift/documents/": (),
    "tests/nightshift/tasks/": (),
}
"""Folders whose tests share what takes long to start, and what tells its instances apart in a test's id."""
OF_ONE_NODE = (
    "tests/contract/brokers/test_unacked.py",
    "tests/contract/brokers/test_whereabouts.py",
    "tests/integration/embedded/test_rabbitmq_node.py",
    "tests/integration/cases/test_bundles.py::test_rabbitmq_",
)
"""Tests that share a private RabbitMQ."""


def group_of(nodeid: str) -> str:
    """Return the group of a test: one process runs all of it."""
    if nodeid.startswith(OF_ONE_NODE):
        return "rabbitmq node"
    if nodeid.startswith(LONG):
        return nodeid
    for folder, instances in TOGETHER.items():
        if nodeid.startswith(folder):
            found = next((one for one in instances if one in nodeid), "")
            return f"{folder}{found}" if found or not instances else nodeid.partition("::")[0]
    return nodeid.partition("::")[0]


def spread(nodeids: Iterable[str]) -> list[str]:
    """Return tests in the order in which their groups begin.

    First what takes long to start; the rest is mixed by kind, in its own order.
    """
    groups: dict[str, list[str]] = {}
    for nodeid in nodeids:
        groups.setdefault(group_of(nodeid), []).append(nodeid)
    kinds: dict[str, list[str]] = {}
    for group in groups:
        kinds.setdefault(next(filter(group.startswith, ENDS_BY), ""), []).append(group)
    first = [group for group in groups if group.startswith(tuple(TOGETHER)) and "::" not in group]
    places = {
        group: -1.0 if group in first else ENDS_BY.get(kind, 1.0) * number / len(of_kind)
        for kind, of_kind in kinds.items()
        for number, group in enumerate(of_kind)
    }
    return [nodeid for group in sorted(groups, key=places.__getitem__) for nodeid in groups[group]]


class Spreading(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Gives a process one group after the other."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


@pytest.hookimpl
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Spreading:
    """Spread the tests by our groups."""
    return Spreading(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where tests run in several processes, order them by `spread`."""
    if not hasattr(config, "workerinput"):
        return
    by_id = {item.nodeid: item for item in items}
    assert len(by_id) == len(items), "two tests of one id"
    items[:] = [by_id[nodeid] for nodeid in spread(by_id)]

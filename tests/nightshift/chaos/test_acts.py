"""What is done to processes, done to real ones."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import psutil  # type: ignore[import-untyped]
import pytest

from nightshift.chaos.acts import ask_to_end, children_of, kill_one, kill_tree, stop_tree, wake_tree

WITHIN_S = 30.0
FAMILY = """
import subprocess, sys, time
for _ in range(2):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print("ready", flush=True)
time.sleep(600)
"""


def eventually(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture
def family() -> Iterator[subprocess.Popen[str]]:
    """A process with two children, each in a session of its own, as PostgreSQL's are."""
    with subprocess.Popen([sys.executable, "-c", FAMILY], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        members = [psutil.Process(parent.pid), *psutil.Process(parent.pid).children()]
        yield parent
        for each in members:
            with suppress(psutil.NoSuchProcess):
                each.kill()


def states(pid: int) -> set[str]:
    root = psutil.Process(pid)
    return {each.status() for each in (root, *root.children())}


def test_a_whole_tree_is_killed_in_whatever_sessions_it_lives(family: subprocess.Popen[str]) -> None:
    members = [psutil.Process(family.pid), *psutil.Process(family.pid).children()]
    assert kill_tree(family.pid) == 3
    family.wait()
    eventually(lambda: not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in members))


def test_a_whole_tree_stands_still_and_goes_on(family: subprocess.Popen[str]) -> None:
    assert stop_tree(family.pid) == 3
    eventually(lambda: states(family.pid) == {psutil.STATUS_STOPPED})
    assert wake_tree(family.pid) == 3
    eventually(lambda: psutil.STATUS_STOPPED not in states(family.pid))


def test_one_child_is_killed_and_the_others_live(family: subprocess.Popen[str]) -> None:
    first, second = children_of(family.pid)
    kill_one(first)
    eventually(lambda: children_of(family.pid) == (second,))
    assert family.poll() is None


def test_a_process_that_is_asked_ends_in_order(family: subprocess.Popen[str]) -> None:
    ask_to_end(family.pid)
    assert family.wait() == -15


def test_who_is_gone_is_passed_over() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    assert (kill_tree(gone.pid), stop_tree(gone.pid), wake_tree(gone.pid)) == (0, 0, 0)
    assert children_of(gone.pid) == ()
    ask_to_end(gone.pid)
    kill_one(gone.pid)

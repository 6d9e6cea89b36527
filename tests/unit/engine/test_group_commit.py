"""Calls of many threads become few acts."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from slackwater.engine.group_commit import GroupCommit


def test_a_lone_call_is_done_at_once_and_answered() -> None:
    acts: list[Sequence[int]] = []

    def act(items: Sequence[int]) -> Sequence[int]:
        acts.append(items)
        return [item * 2 for item in items]

    commit = GroupCommit(act)
    assert [commit(1), commit(2)] == [2, 4]
    assert acts == [[1], [2]]


def test_calls_that_come_while_one_is_under_way_are_done_together_each_with_its_own_answer() -> None:
    sizes: list[int] = []
    first, go_on = threading.Event(), threading.Event()

    def act(items: Sequence[int]) -> Sequence[int]:
        sizes.append(len(items))
        first.set()
        assert go_on.wait(30)
        return [-item for item in items]

    commit = GroupCommit(act, most=30)
    with ThreadPoolExecutor(51) as pool:
        lone = pool.submit(commit, 1000)
        assert first.wait(30)
        others = [pool.submit(commit, number) for number in range(50)]
        while len(commit._waiting) < 50:
            assert not lone.done()
        go_on.set()
        assert lone.result(30) == -1000
        assert [other.result(30) for other in others] == [-number for number in range(50)]
    assert sizes == [1, 30, 20]


def test_an_error_reaches_all_whom_it_concerns_and_nobody_else() -> None:
    def act(items: Sequence[int]) -> Sequence[int]:
        return [10 // item for item in items]

    commit = GroupCommit(act)
    with pytest.raises(ZeroDivisionError):
        commit(0)
    assert commit(5) == 2

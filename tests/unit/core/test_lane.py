from __future__ import annotations

from typing import Any

import pytest

from slackwater.core.lane import NICE_OF_HEAVY_WORK, Lane, Pool, by_name, find
from slackwater.core.resource import host, model, peer
from slackwater.errors import ConfigurationError


def test_work_that_waits_on_the_host_gets_processes_and_other_work_threads() -> None:
    assert Lane("compute", 2, waits_on=[host, model()]).pool is Pool.PREFORK
    assert Lane("network", 40, waits_on=[peer("bank")]).pool is Pool.THREADS
    assert Lane("housekeeping", 1).pool is Pool.THREADS


def test_a_pool_may_be_named_by_its_text() -> None:
    assert Lane("network", 40, pool="gevent").pool is Pool.GEVENT


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": "Network"}, "lane 'Network': a name is lower case"),
        ({"name": ""}, "a name is lower case"),
        ({"name": "x" * 64}, "at most 63"),
        ({"slots": 0}, "slots must be at least 1, not 0"),
        ({"reserved": 5}, r"reserved must be between 0 and slots \(4\), not 5"),
        ({"reserved": -1}, "not -1"),
        ({"pool": "fibres"}, "pool 'fibres' is not one of prefork, threads, gevent, solo"),
    ],
)
def test_a_lane_that_cannot_be_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Lane(**{"name": "network", "slots": 4, **options})


def test_heavy_work_yields_the_cores_unless_its_lane_is_protected() -> None:
    assert Lane("compute", 2, waits_on=[host]).niceness == NICE_OF_HEAVY_WORK
    assert Lane("realtime", 2, waits_on=[host], protected=True).niceness == 0
    assert Lane("network", 40, waits_on=[peer("bank")]).niceness == 0


def test_lanes_are_found_by_name() -> None:
    network, compute = Lane("network", 40), Lane("compute", 2)

    assert find(by_name([network, compute]), "compute", asked_by="task 'read'") is compute


def test_an_unknown_lane_is_refused_with_the_nearest_name_or_all_of_them() -> None:
    lanes = by_name([Lane("network", 40), Lane("compute", 2)])

    with pytest.raises(ConfigurationError, match="task 'sync': no lane is named 'netwrok'; did you mean 'network'"):
        find(lanes, "netwrok", asked_by="task 'sync'")
    with pytest.raises(ConfigurationError, match="there are: network, compute"):
        find(lanes, "zzz", asked_by="task 'sync'")


def test_no_lanes_and_two_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="no lanes given"):
        by_name([])
    with pytest.raises(ConfigurationError, match="'network' is given twice"):
        by_name([Lane("network", 1), Lane("network", 2)])

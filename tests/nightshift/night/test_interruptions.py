"""What ends a night early: one clear line, exit code 2, and no process left."""

import os
import signal

import pytest
from tests.nightshift.night.conftest import StartNight

pytestmark = pytest.mark.timeout(180)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_ends_a_night_cleanly(start_night: StartNight, number: signal.Signals) -> None:
    night = start_night()
    night.until_in_the_middle()
    night.popen.send_signal(number)
    assert night.wait() == 2
    assert night.told() == f"nightshift: stopped by {number.name} before the night was over; nothing is left running"
    assert night.left_running() == []
    assert not night.report.exists()


def test_a_signal_while_servers_start_ends_a_night_cleanly(start_night: StartNight) -> None:
    night = start_night()
    night.until(lambda: bool(night.children()))
    night.popen.send_signal(signal.SIGINT)
    assert night.wait() == 2
    assert "stop" in night.told()
    assert night.left_running() == []


@pytest.mark.parametrize("name", ["worker-agent_realtime", "balancer", "people", "world", "valkey", "postgresql"])
def test_kill_9_of_a_child_ends_a_night_and_names_it(start_night: StartNight, name: str) -> None:
    night = start_night()
    night.until_in_the_middle()
    pid = night.children()[name]
    os.kill(pid, signal.SIGKILL)
    assert night.wait() == 2
    told = night.told()
    assert told.startswith(f"nightshift: {name} (pid {pid}) was killed by SIGKILL; the night is stopped, its log is ")
    assert told.endswith(f"{name}.log")
    assert night.left_running() == []

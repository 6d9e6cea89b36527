"""Nights of chaos: the report holds all the same, and an end in the middle is as clean as ever."""

import signal

import psutil  # type: ignore[import-untyped]
import pytest
from tests.nightshift.night.conftest import StartNight
from tests.nightshift.night.running import RunningNight

from nightshift import journal

pytestmark = pytest.mark.timeout(300)

WITHIN_S = 280.0


def test_a_night_of_chaos_holds_all_checks_and_tells_what_was_struck(start_night: StartNight) -> None:
    night = start_night("--chaos", "--seed=3")
    night.spoil_receipts(but=6)
    assert night.wait(WITHIN_S) == 0, night.stdout + night.stderr
    assert night.stderr == ""
    struck = night.json["chaos"]
    assert struck
    assert all(one["recovered"] for one in struck), struck
    assert [one["target"] for one in struck] == [event["target"] for event in night.events(journal.STRUCK)]
    assert night.stdout.count("chaos: ") == len(struck)
    assert night.json["jobs"]["lost"] == night.json["jobs"]["twice"] == 0
    page = night.report.with_suffix(".html").read_text(encoding="utf-8")
    assert "Chaos" in page
    assert "Chaos" in night.stdout
    assert night.left_running() == []


def test_a_signal_while_a_process_stands_still_ends_a_night_of_chaos_cleanly(start_night: StartNight) -> None:
    night = start_night("--chaos", "--seed=1")  # which stops a worker for 19 s
    night.until(lambda: stopped(night))
    night.popen.send_signal(signal.SIGTERM)
    assert night.wait() == 2
    assert night.told() == "nightshift: stopped by SIGTERM before the night was over; nothing is left running"
    assert night.left_running() == []


def test_kill_9_of_a_night_of_chaos_leaves_nothing_also_of_what_stands_still(start_night: StartNight) -> None:
    night = start_night("--chaos", "--seed=1")
    night.until(lambda: stopped(night))
    night.popen.kill()
    night.wait()
    assert night.left_running() == []


def test_a_death_that_is_nobodys_strike_ends_a_night_of_chaos_in_one_line(start_night: StartNight) -> None:
    night = start_night("--chaos", "--seed=3")
    night.until_in_the_middle()
    pid = night.children()["people"]
    psutil.Process(pid).kill()
    assert night.wait() == 2
    assert night.told().startswith(f"nightshift: people (pid {pid}) was killed by SIGKILL; the night is stopped")
    assert night.left_running() == []


def stopped(night: RunningNight) -> bool:
    """Tell whether a process of the night stands still."""
    return any(status(pid) == psutil.STATUS_STOPPED for pid in night.children().values())


def status(pid: int) -> str | None:
    try:
        return str(psutil.Process(pid).status())
    except psutil.Error:
        return None

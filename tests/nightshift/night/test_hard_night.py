"""A night in which the outside world does all that it can do wrong, by the script of faults that we ship."""

from pathlib import Path

import pytest
from tests.nightshift.night.conftest import StartNight

from nightshift import journal
from nightshift.world.books import read_calls, read_filings
from nightshift.world.kinds import Fault, PathKind

pytestmark = pytest.mark.timeout(300)

SCRIPT = Path(__file__).parents[3] / "docs" / "hard-night.json"
WITHIN_S = 240.0
BY_THE_SCRIPT = {Fault.DEATH, Fault.HANG, Fault.LOST_ANSWER, Fault.TRUNCATED, Fault.SCRIPTED_429, Fault.SCRIPTED_5XX}


def test_a_hard_night_loses_nothing_files_nothing_twice_and_everybody_gets_an_answer(start_night: StartNight) -> None:
    night = start_night(f"--faults={SCRIPT}")
    night.spoil_receipts(but=2)
    assert night.wait(WITHIN_S) == 0, night.stdout + night.stderr
    assert night.stderr == ""
    assert "the outside world died, as its script of faults says; it was started again" in night.stdout
    calls, filings = read_calls(night.folder / "world.sqlite"), read_filings(night.folder / "world.sqlite")
    assert {call.fault for call in calls} >= BY_THE_SCRIPT
    jobs = night.json["jobs"]
    assert jobs["lost"] == jobs["twice"] == jobs["failed"] == jobs["dead"] == 0
    clicked = {event["run_id"] for event in night.events(journal.CLICKED)}
    answered = {event["job"]: event["state"] for event in night.events(journal.ANSWERED)}
    assert sorted(one.idempotency_key for one in filings) == sorted(f"agent-run:{run}" for run in clicked)
    assert list(answered.values()) == ["done"] * len(clicked)
    assert night.json["figures"]["books"]["filing_count"] == len(clicked)
    asked_again = [call for call in calls if call.kind is PathKind.FILING_LOOKUP]
    assert asked_again, "an unknown outcome is looked up"
    assert night.left_running() == []

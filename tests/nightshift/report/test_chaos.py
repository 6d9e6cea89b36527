"""Strikes in the report: told as they were made, with what became of them; and what they excuse."""

from dataclasses import replace
from datetime import timedelta

from tests.nightshift.report.conftest import RUN_ORIGIN, TEMPO

from nightshift import journal
from nightshift.chaos.strike import StrikeKind, Struck
from nightshift.report.checks import Report, run_checks
from nightshift.report.gather import strikes_of
from nightshift.report.machine import to_json
from nightshift.report.night import Night
from nightshift.report.picture import picture
from nightshift.report.tables import strikes
from nightshift.world.kinds import PathKind

AT = RUN_ORIGIN + timedelta(seconds=60)
KILLED = Struck(
    at=AT,
    kind=StrikeKind.KILL,
    target="worker-transaction_sync",
    lasts=timedelta(seconds=2),
    effect="pid 17, 1 processes",
    recovered_at=AT + timedelta(seconds=2.5),
    recovery="started again",
)
GONE = replace(KILLED, at=AT + timedelta(seconds=9), target="balancer", recovered_at=None, recovery="")


def twice_fetched(night: Night) -> tuple[Night, str]:
    """Return a night in which one job fetched its account twice, with the job."""
    call = next(one for one in night.calls if one.kind is PathKind.TRANSACTIONS)
    assert call.job_id is not None
    return replace(night, calls=[*night.calls, replace(call, call_id=99_999)]), call.job_id


def tried_again(night: Night, job: str, error: str) -> Night:
    first = next(run for run in night.runs if run.job == job)
    earlier = replace(first, started_at=first.started_at - timedelta(seconds=1), tried_again_for=error)
    return replace(night, runs=[*night.runs, earlier])


def test_strikes_are_paired_with_the_recoveries_of_those_that_they_hit() -> None:
    made = {"kind": "SIGSTOP", "target": "balancer", "lasts_s": 3.0, "effect": "pid 4, 1 processes"}
    events = [
        {"event": journal.RECOVERED, "at": "2026-11-29T20:01:04+00:00", "number": 1, "how": "SIGCONT"},
        {"event": journal.STRUCK, "at": "2026-11-29T20:01:05+00:00", "number": 2, **made},
        {"event": journal.STRUCK, "at": "2026-11-29T20:01:00+00:00", "number": 1, **made},
    ]
    first, second = strikes_of(events)
    assert (first.recovered_at, first.recovery) == (first.at + timedelta(seconds=4), "SIGCONT")
    assert (second.recovered_at, second.recovery) == (None, "")


def test_each_strike_is_told_with_when_its_target_was_back(night: Night) -> None:
    report = run_checks(replace(night, chaos=[KILLED, GONE]))
    first, second = to_json(report)["chaos"]
    assert first["night_at"] == TEMPO.calendar_at(AT).isoformat()
    assert (first["kind"], first["recovered"], first["recovered_after_s"]) == ("kill -9", True, 2.5)
    assert (second["recovered"], second["recovered_after_s"]) == (False, None)
    assert [row[-1] for row in strikes(report).rows] == ["2.5 s, started again", "it did not come back"]


def test_the_picture_has_a_wedge_for_each_strike_and_none_without_chaos(night: Night, report: Report) -> None:
    drawn = picture(run_checks(replace(night, chaos=[KILLED, GONE])))
    assert drawn.count("back after") == 2
    assert "2 strikes of chaos" in drawn
    assert "back after" not in picture(report)
    assert to_json(report)["chaos"] == []


def test_a_body_that_could_not_write_down_what_it_fetched_may_fetch_it_again_in_a_night_of_chaos(night: Night) -> None:
    fetched, job = twice_fetched(night)
    away = tried_again(fetched, job, "OperationalError")
    assert not run_checks(away).checks[1].ok, "in a night without chaos no server of ours is away"
    check = run_checks(replace(away, chaos=[KILLED])).checks[1]
    assert check.ok
    assert any(job in note and "OperationalError" in note for note in check.notes)


def test_chaos_excuses_nothing_else(night: Night) -> None:
    fetched, job = twice_fetched(night)
    assert not run_checks(replace(fetched, chaos=[KILLED])).checks[1].ok
    refused = tried_again(fetched, job, "PeerUnavailable")
    assert not run_checks(replace(refused, chaos=[KILLED])).checks[1].ok

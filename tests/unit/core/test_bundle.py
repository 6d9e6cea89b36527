"""How a group or a chord stands, by what is seen of its jobs."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slackwater import hours, minutes
from slackwater.core.bundle import Bundle, Goes, Link, Member, Missing, Over, Seen, judge, reason_of, unended
from slackwater.core.job import JobState

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


def member(*jobs: str, placed: bool = True) -> Member:
    return Member(links=tuple(Link(job, "sync") for job in jobs), placed=placed)


def bundle(*members: Member, body: str | None = None, **given: Any) -> Bundle:
    return Bundle(id="g", members=members, body=None if body is None else member(body), noted_at=NOON, **given)


def seen(
    *placed: str, known: bool = True, kept: tuple[str, ...] = (), later: timedelta = timedelta(hours=1), **states: str
) -> Seen:
    return Seen(
        states={job: JobState(state) for job, state in states.items()},
        kept=frozenset(kept),
        placed=frozenset(placed) if known else None,
        run=NOON + later,
        calendar=NOON + later,
        grace=minutes(15),
    )


A, B = member("a"), member("b")
PAIR, CHORD = bundle(A, B), bundle(A, B, body="c")


def test_a_group_is_over_once_all_have_ended_however() -> None:
    assert judge(PAIR, seen(a="done", b="revoked")) == Over()


def test_a_chord_is_over_once_its_body_has_ended() -> None:
    assert judge(CHORD, seen(a="done", b="done", c="done")) == Over()
    assert judge(CHORD, seen(a="failed", c="failed")) == Over()


@pytest.mark.parametrize("where", [{"placed": ("b",)}, {"kept": ("b",)}])
def test_a_member_that_waits_somewhere_goes_on(where: dict[str, Any]) -> None:
    assert judge(PAIR, seen(*where.get("placed", ()), kept=where.get("kept", ()), a="done")) == Goes()


@pytest.mark.parametrize("state", [None, "queued", "running", "held"])
def test_a_member_that_is_in_no_queue_and_in_nobodys_hands_is_missing_whatever_its_result_says(
    state: str | None,
) -> None:
    states: dict[str, Any] = {"a": "done"} | ({} if state is None else {"b": state})
    assert judge(PAIR, seen(**states)) == Missing((B,))


def test_the_jobs_of_a_chain_speak_for_its_end() -> None:
    chained = bundle(member("a", "b", "c"))
    assert judge(chained, seen("b", a="done")) == Goes()
    assert judge(chained, seen(a="done")) == Missing(chained.members)


def test_a_chord_whose_members_are_all_done_misses_its_body_where_nobody_has_it() -> None:
    assert judge(CHORD, seen("c", a="done", b="done")) == Goes()
    assert judge(CHORD, seen(a="done", b="done")) == Missing(())
    assert judge(CHORD, seen(a="done", b="expired")) == Missing((), (B,))


def test_where_nobody_can_tell_it_goes_on_until_it_is_too_late() -> None:
    windowed = bundle(A, start_by=NOON + minutes(30))
    assert judge(windowed, seen(known=False, later=minutes(45))) == Goes()
    assert judge(windowed, seen(known=False, later=minutes(46))) == Missing((A,))
    kept = bundle(A, kept_until=NOON + hours(24))
    assert judge(kept, seen(known=False, later=hours(23))) == Goes()
    assert judge(kept, seen(known=False, later=hours(24) - minutes(4))) == Missing((A,))
    assert judge(PAIR, seen(known=False, later=timedelta(days=99))) == Goes()


@pytest.mark.parametrize("state", ["running", "held"])
def test_where_nobody_can_tell_a_body_that_runs_is_never_too_late(state: str) -> None:
    assert judge(bundle(A, start_by=NOON), seen(known=False, a=state)) == Goes()


def test_what_goes_to_another_queue_is_never_missing_by_a_look_at_the_lanes() -> None:
    elsewhere = bundle(member("a", placed=False), kept_until=NOON + hours(24))
    assert judge(elsewhere, seen()) == Goes()
    assert judge(elsewhere, seen(later=hours(24) - minutes(4))) == Missing(elsewhere.members)


def test_once_its_results_may_be_gone_nobody_can_tell_and_it_is_over() -> None:
    kept = bundle(A, B, body="c", kept_until=NOON + hours(24))
    assert judge(kept, seen(later=hours(24))) == Missing((A, B))
    assert judge(kept, seen(later=hours(25))) == Over()


def test_the_reason_names_where_each_got_stuck_and_at_most_five() -> None:
    chained = bundle(member("a", "b"), member("c", "d"), B)
    found = seen(a="done", c="expired")
    missing = judge(chained, found)
    assert isinstance(missing, Missing)
    assert reason_of(chained, missing, found.states) == (
        "3 of 3 members will never end: sync b (nobody has it), sync c (expired), sync b (nobody has it)"
    )
    many = bundle(*(member(str(number)) for number in range(7)))
    assert reason_of(many, Missing(many.members), {}).endswith("sync 4 (nobody has it) and 2 more")


def test_the_reason_says_what_a_body_was_not_told() -> None:
    states = {"a": JobState.DONE, "b": JobState.FAILED}
    assert reason_of(CHORD, Missing((), (B,)), states) == (
        "its body was not told that members had failed: sync b (failed)"
    )
    assert reason_of(CHORD, Missing(()), states) == (
        "all members are done, and its body sync c was never published, or lost"
    )


def test_of_a_chain_only_those_without_an_end_are_ended() -> None:
    chained = member("a", "b", "c")
    assert [link.job for link in unended(chained, {"a": JobState.REVOKED, "b": JobState.QUEUED})] == ["b", "c"]


def test_its_kind_follows_from_its_body() -> None:
    assert (PAIR.kind, CHORD.kind) == ("group", "chord")
    assert list(CHORD.jobs) == ["a", "b", "c"]

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from itertools import combinations_with_replacement
from typing import Any
from uuid import UUID

from hypothesis import assume, given
from hypothesis import strategies as st

from slackwater.core.job import JobState, Mark, child_id
from slackwater.core.occurrence import OccurrenceState, judge, sources
from slackwater.core.tempo import Tempo

ZONES = st.sampled_from([UTC, timezone(timedelta(hours=2)), timezone(timedelta(hours=-9, minutes=-30))])
INSTANTS = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=ZONES)  # noqa: DTZ001 - zones are given
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)
KEYWORDS = st.dictionaries(st.text(), PLAIN, max_size=4)
MARKS = st.builds(
    Mark,
    published_at=INSTANTS,
    lane=st.none() | st.text(min_size=1),
    start_by=st.none() | INSTANTS,
    occurrence=st.none() | st.uuids(),
    elastic=st.booleans(),
)
COUNTS = st.dictionaries(st.sampled_from(JobState), st.integers(1, 5), max_size=5)
PARENTS = st.none() | st.sampled_from(JobState)
OPEN = st.sampled_from([OccurrenceState.DUE, OccurrenceState.QUEUED, OccurrenceState.RUNNING])


@given(MARKS)
def test_a_mark_comes_back_from_its_header_as_it_was(mark: Mark) -> None:
    assert Mark.from_header(json.loads(json.dumps(mark.to_header()))) == mark


@given(PLAIN | st.dictionaries(st.sampled_from(["published_at", "lane", "start_by", "occurrence", "elastic"]), PLAIN))
def test_a_foreign_header_is_read_or_is_none_and_never_an_error(header: object) -> None:
    mark = Mark.from_header(header)

    assert mark is None or isinstance(mark.lane, str | None)


@given(st.uuids(), st.text(), st.lists(PLAIN, max_size=3), KEYWORDS)
def test_the_same_item_of_the_same_parent_has_the_same_id(
    parent: UUID, task: str, args: list[Any], kwargs: Mapping[str, Any]
) -> None:
    turned = dict(reversed(list(kwargs.items())))

    assert child_id(parent, task, args, kwargs) == child_id(parent, task, tuple(args), turned)


@given(st.uuids(), st.uuids(), st.lists(PLAIN, max_size=3), st.lists(PLAIN, max_size=3))
def test_another_item_or_parent_has_another_id(parent: UUID, other: UUID, args: list[Any], others: list[Any]) -> None:
    assume(parent != other and json.dumps(args, sort_keys=True) != json.dumps(others, sort_keys=True))
    ids = {child_id(whose, "sync", what, {}) for whose in (parent, other) for what in (args, others)}

    assert len(ids) == 4


@given(INSTANTS, INSTANTS, st.floats(0.001, 10_000), st.timedeltas(timedelta(days=-30), timedelta(days=30)))
def test_a_tempo_reads_what_it_wrote_and_comes_back_from_the_calendar(
    run: datetime, calendar: datetime, rate: float, after: timedelta
) -> None:
    tempo = Tempo(run_origin=run, calendar_origin=calendar, rate=rate)
    back = tempo.run_at(tempo.calendar_at(run + after))

    assert Tempo.parse(str(tempo)) == tempo
    assert abs(back - (run + after)) <= timedelta(microseconds=1 + 1 / rate)


@given(PARENTS, COUNTS, OPEN)
def test_an_occurrence_ends_only_when_its_parent_and_all_its_jobs_have(
    parent: JobState | None, jobs: dict[JobState, int], now: OccurrenceState
) -> None:
    all_ended = parent is not None and parent.final and all(state.final for state in jobs)

    assert judge(parent, jobs, now=now).state.final == all_ended


@given(PARENTS, COUNTS, OPEN)
def test_a_verdict_is_a_state_that_the_store_lets_it_move_to(
    parent: JobState | None, jobs: dict[JobState, int], now: OccurrenceState
) -> None:
    assert now in sources(judge(parent, jobs, now=now).state)


@given(st.sampled_from([state for state in JobState if state.final]), COUNTS, OPEN)
def test_settling_more_jobs_never_takes_a_verdict_back(
    parent: JobState, jobs: dict[JobState, int], now: OccurrenceState
) -> None:
    before = judge(parent, jobs, now=now).state
    settled = {state: count for state, count in jobs.items() if state.final}
    settled[JobState.DONE] = settled.get(JobState.DONE, 0) + sum(jobs.values()) - sum(settled.values()) or 1

    after = judge(parent, settled, now=before if not before.final else now).state

    assert after.final
    assert not before.final or after is before


def test_no_state_can_be_come_to_from_a_later_one() -> None:
    ranks = {OccurrenceState.DUE: 0, OccurrenceState.QUEUED: 1, OccurrenceState.RUNNING: 2}
    for one, other in combinations_with_replacement(OccurrenceState, 2):
        for start, end in ((one, other), (other, one)):
            onward = start is end or ranks.get(start, 3) < ranks.get(end, 3)
            assert (start in sources(end)) == onward

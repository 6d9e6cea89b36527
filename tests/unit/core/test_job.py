from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from slackwater.core.job import JobState, Mark, child_id

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
PARENT = UUID("00000000-0000-5000-8000-000000000001")


def test_held_queued_and_running_are_not_final() -> None:
    assert {state.value for state in JobState if not state.final} == {"held", "queued", "running"}


def test_a_header_holds_what_is_set_and_nothing_else() -> None:
    assert Mark(published_at=NOON).to_header() == {"published_at": "2026-11-29T12:00:00+00:00"}
    assert Mark(published_at=NOON, lane="network", start_by=NOON, occurrence=PARENT, elastic=True).to_header() == {
        "published_at": "2026-11-29T12:00:00+00:00",
        "lane": "network",
        "start_by": "2026-11-29T12:00:00+00:00",
        "occurrence": str(PARENT),
        "elastic": True,
    }


@pytest.mark.parametrize(
    "header",
    [
        None,
        "text",
        {},
        {"published_at": 12},
        {"published_at": "yesterday"},
        {"published_at": "2026-11-29T12:00:00"},
        {"published_at": "2026-11-29T12:00:00Z", "occurrence": "no id"},
        {"published_at": "2026-11-29T12:00:00Z", "occurrence": 5},
        {"published_at": "2026-11-29T12:00:00Z", "lane": ["network"]},
        {"published_at": "2026-11-29T12:00:00Z", "start_by": "2026-11-29T12:00:00"},
    ],
)
def test_a_header_that_is_not_ours_is_none(header: object) -> None:
    assert Mark.from_header(header) is None


def test_a_header_with_more_than_we_know_is_read() -> None:
    header = {"published_at": "2026-11-29T12:00:00Z", "elastic": "yes", "of a newer version": 1}

    assert Mark.from_header(header) == Mark(published_at=NOON, elastic=False)


def test_a_childs_id_is_the_same_in_every_process_and_version() -> None:
    # Written down, not computed: children published before an upgrade must be recognised after it.
    assert child_id(PARENT, "sync", [7], {"full": True}) == UUID("bf86c4bf-fed5-5f36-a62e-05e67e7205ad")


def test_a_childs_id_depends_on_parent_task_and_arguments() -> None:
    other = UUID(int=2)
    ids = {
        child_id(PARENT, "sync", [7], {}),
        child_id(other, "sync", [7], {}),
        child_id(PARENT, "read", [7], {}),
        child_id(PARENT, "sync", [8], {}),
        child_id(PARENT, "sync", ["7"], {}),
        child_id(PARENT, "sync", [], {"account": 7}),
    }

    assert len(ids) == 6

"""Groups and chords that cannot complete: what ends them, each on real workers."""

from __future__ import annotations

from typing import Any

import pytest
from celery import chain, chord, group
from tests.integration.cases.losing import Swept, lose_what_waits, sweeping
from tests.integration.cases.ward import Ward
from tests.integration.celery.spine import eventually

from slackwater.cli.sweepers import stuck_bundles_of
from slackwater.core.bundle import BundleState

CLOSED_WITHIN_S = 60
"""Three times the span that nothing is looked at, and the one that a job must have been seen nowhere."""
VALKEY = pytest.mark.parametrize("broker_url", ["valkey"], indirect=True)


def note(ward: Ward, word: str) -> Any:
    return ward.tasks["waiting.note"].si(word)


def closed(ward: Ward, bundle: str, swept: Swept) -> tuple[BundleState, str]:
    """Wait until a bundle is closed; return as what, and why."""
    found = eventually(
        lambda: [one for one in ward.sw.store.bundles.closed(limit=99) if one.id == bundle],
        within_s=CLOSED_WITHIN_S,
        otherwise=lambda: str(swept.rounds[-2:]),
    )
    return found[0].state, found[0].reason


@VALKEY
def test_a_chord_whose_member_nobody_has_fails_and_names_it(ward: Ward) -> None:
    lost = note(ward, "lost").set(task_id="lost-1")
    ended: Any = chord([lost, ward.tasks["heavy.note"].si("good")], note(ward, "body")).apply_async()
    lose_what_waits(ward, "waiting")
    with (
        ward.worker("one", lane="heavy"),
        ward.worker("two", lane="waiting"),
        sweeping(stuck_bundles_of(ward.sw)) as swept,
    ):
        state, reason = closed(ward, ended.parent.id, swept)
    assert state is BundleState.FAILED
    assert reason == "1 of 2 members will never end, as nobody has them: waiting.note lost-1"
    meta = ward.meta(ended.id)
    assert meta["status"] == "FAILURE"
    assert "Dependency lost-1 raised LostJob" in str(meta["result"])
    assert not ward.runs(ended.id)
    assert [one.note for one in swept.rounds if one.found_count] == [f"chord {ended.parent.id}: {reason}"]
    assert not ward.sw.store.bundles.open()

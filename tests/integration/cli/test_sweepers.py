"""What `slackwater sweepers` shows: each sweeper's latest round, and the groups and chords that were closed."""

import json
from datetime import UTC, datetime
from uuid import uuid4

from tests.integration.cli.front_door import APP, FrontDoor

from slackwater.adapters.postgres import PostgresStore
from slackwater.core.bundle import Bundle, Link, Member
from slackwater.core.sweep import Sweep

NOW = datetime.now(UTC)


def sweepers(door: FrontDoor, *words: str) -> str:
    done = door.run("-A", APP, "sweepers", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_round_and_a_chord_that_was_closed_are_shown_with_their_reasons(
    door: FrontDoor, store: PostgresStore
) -> None:
    name, chord = f"sweeper-{uuid4().hex[:6]}", uuid4().hex
    store.sweeps.record(Sweep(sweeper=name, at=NOW, found_count=3, recovered_count=2, note="one is left"))
    body = Member(links=(Link("body", "report"),))
    store.bundles.note([Bundle(id=chord, members=(Member(links=(Link("a"),)),), body=body, noted_at=NOW)])
    store.bundles.blame(chord, "1 of 1 members will never end: a (nobody has it)")
    store.bundles.close([chord], at=NOW)

    said = sweepers(door)
    assert name in said
    assert "one is left" in said
    [line] = [each for each in said.splitlines() if each.startswith(chord)]
    assert line.endswith("failed  1 of 1 members will never end: a (nobody has it)")

    shown = json.loads(sweepers(door, "--json"))
    [one] = [each for each in shown["sweepers"] if each["sweeper"] == name]
    assert (one["found_count"], one["recovered_count"]) == (3, 2)
    [closed] = [each for each in shown["closed"] if each["id"] == chord]
    assert closed["state"] == "failed"


def test_a_sweeper_that_failed_says_why(door: FrontDoor, store: PostgresStore) -> None:
    name = f"sweeper-{uuid4().hex[:6]}"
    store.sweeps.record(Sweep(sweeper=name, at=NOW, error="StoreUnavailable: away"))
    assert "failed: StoreUnavailable: away" in sweepers(door)

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from slackwater.core.admission import Admit, Ask, KeyRule, LeaseRule, Wait
from slackwater.core.job import JobState
from slackwater.core.message import Held, Message
from slackwater.core.reading import Presence
from slackwater.ports import Store
from slackwater.ports.delivery import Announcement, Begun

LIVES_FOR = timedelta(seconds=0.6)
BOOT, OTHER, THIRD = UUID(int=1), UUID(int=2), UUID(int=3)
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


def ask(job: str, *, lease: str = "account:7", boot: UUID = BOOT, key: str | None = None) -> Ask:
    rule = LeaseRule(name=lease, lives_for=LIVES_FOR)
    keyed = None if key is None else KeyRule(name=key)
    return Ask(job=job, tries=0, task="sync", boot=boot, redelivered=False, lease=rule, key=keyed)


def begin(store: Store, one: Ask) -> Begun:
    (begun,) = store.runs.begin([one])
    return begun


def alive(store: Store) -> None:
    """Give a sign of life of a worker that holds nothing."""
    store.runs.renew(OTHER, [], lives_for=LIVES_FOR)


def until(what: Callable[[], bool], *, meanwhile: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not what():
        assert time.monotonic() < deadline, "it never came"
        meanwhile()
        time.sleep(0.02)


def passed(store: Store, span: timedelta) -> Callable[[], bool]:
    end = store.runs.now() + span
    return lambda: store.runs.now() > end


def test_a_lease_that_is_not_renewed_lapses_and_the_next_holder_gets_a_higher_fence(store: Store) -> None:
    first = begin(store, ask("a"))
    assert isinstance(begin(store, ask("b", boot=OTHER)).admission, Wait)

    until(lambda: store.runs.lease("account:7") is None, meanwhile=lambda: alive(store))
    second = begin(store, ask("b", boot=OTHER))

    assert second.admission == Admit(attempt=1, takes_lease=True)
    assert (second.fence or 0) > (first.fence or 0)


def test_a_lease_that_is_renewed_outlives_its_time_to_live(store: Store) -> None:
    begun = begin(store, ask("a"))
    until(passed(store, 3 * LIVES_FOR), meanwhile=lambda: store.runs.renew(BOOT, ["a", "nobody"], lives_for=LIVES_FOR))

    assert isinstance(begin(store, ask("b", boot=OTHER)).admission, Wait)
    held = store.runs.lease("account:7")
    assert held is not None
    assert held.fence == begun.fence


def test_leases_of_those_bodies_and_of_that_process_alone_are_renewed(store: Store) -> None:
    for job, boot in (("a", BOOT), ("b", BOOT), ("c", OTHER)):
        begin(store, ask(job, lease=job, boot=boot))

    until(
        lambda: store.runs.lease("b") is None and store.runs.lease("c") is None,
        meanwhile=lambda: store.runs.renew(BOOT, ["a", "c"], lives_for=LIVES_FOR),
    )
    assert store.runs.lease("a") is not None


def test_presence_is_a_sign_of_life_too(store: Store) -> None:
    begin(store, ask("a"))

    def say() -> None:
        at = store.runs.now()
        store.presence.refresh(
            Presence(
                worker="w", boot=OTHER, host="h", pid=1, started_at=NOW, refreshed_at=at, lives_for=LIVES_FOR, lanes={}
            )
        )

    until(lambda: store.runs.lease("account:7") is None, meanwhile=say)


def test_after_a_time_in_which_nobody_refreshed_anything_a_lease_lives_one_time_to_live_longer(store: Store) -> None:
    alive(store)
    begun = begin(store, ask("a"))
    until(passed(store, 3 * LIVES_FOR), meanwhile=lambda: None)

    assert store.runs.lease("account:7") is not None
    assert isinstance(begin(store, ask("b", boot=OTHER)).admission, Wait)
    store.runs.renew(BOOT, ["a"], lives_for=LIVES_FOR)
    held = store.runs.lease("account:7")
    assert held is not None
    assert held.fence == begun.fence

    until(lambda: store.runs.lease("account:7") is None, meanwhile=lambda: alive(store))


def test_a_key_whose_holder_has_lapsed_goes_to_the_next_and_the_old_fence_is_stale(store: Store) -> None:
    begin(store, ask("a", lease="one", key="run:1"))
    until(lambda: store.runs.lease("one") is None, meanwhile=lambda: alive(store))

    admission = begin(store, ask("b", lease="two", boot=OTHER, key="run:1")).admission
    store.runs.renew(BOOT, ["a"], lives_for=LIVES_FOR)

    assert admission == Admit(attempt=1, takes_key=True, takes_lease=True)
    assert store.runs.lease("one") is None
    key = store.runs.key("run:1")
    assert key is not None
    assert (key.job, key.lease, key.state) == ("b", "two", JobState.RUNNING)


def test_a_key_whose_holder_has_lapsed_may_be_announced_anew_and_the_old_fence_is_stale(store: Store) -> None:
    begin(store, ask("a", lease="one", key="run:1"))
    until(lambda: store.runs.lease("one") is None, meanwhile=lambda: alive(store))

    again = Announcement(job="b", task="sync", key=KeyRule(name="run:1"))
    assert list(store.runs.announce([again], at=NOW, stale_before=NOW)) == ["b"]
    store.runs.renew(BOOT, ["a"], lives_for=LIVES_FOR)
    assert store.runs.lease("one") is None


def test_a_held_job_may_go_once_the_lease_that_it_waits_for_has_lapsed(store: Store) -> None:
    begin(store, ask("a"))
    message = Message(
        job="b", task="t", queue="q", headers={}, body=b"", content_type="x", content_encoding="y"
    )  # fmt: skip
    store.holds.hold(
        [Held(message=message, lane="q", tries=0, not_before=NOW, waits_for="account:7", reason="", held_at=NOW)]
    )
    found: list[str] = []

    def claim() -> bool:
        claimed = store.holds.claim({"q": 1}, boot=OTHER, now=NOW, claimed_for=LIVES_FOR)
        found.extend(one.job for one in claimed)
        return bool(found)

    until(claim, meanwhile=lambda: alive(store))
    assert found == ["b"]
    assert store.runs.lease("account:7") is None


def test_lapsed_leases_are_pruned(store: Store) -> None:
    begin(store, ask("a"))
    until(lambda: store.runs.lease("account:7") is None, meanwhile=lambda: alive(store))

    # Again where the test stood still for so long that there is an amnesty: what had lapsed counts as live in it.
    until(lambda: store.runs.prune(before=store.runs.now()) == 1, meanwhile=lambda: alive(store))
    assert isinstance(begin(store, replace(ask("b"), boot=THIRD)).admission, Admit)

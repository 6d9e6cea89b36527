"""Groups and chords that cannot complete: each is closed on real workers, with the missing job named."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from celery import chain, chord, group
from tests.integration.cases import publisher
from tests.integration.cases.losing import EVERY_S, Swept, lose_what_waits, sweeping
from tests.integration.cases.ward import Ward, ward_at
from tests.integration.celery.application import Place
from tests.integration.celery.spine import eventually
from tests.programs import running
from tests.rabbitmq_node import RabbitMQNode

from slackwater.cli.sweepers import stuck_bundles_of
from slackwater.core.bundle import BundleState

CLOSED_WITHIN_S = 90
"""Three times the span in which nothing is looked at, and the one that a job must have been seen nowhere; once more for
a bundle around another."""
LOST = "waiting.note lost-1 (nobody has it)"
bundles_of = partial(stuck_bundles_of, every=timedelta(seconds=EVERY_S))
VALKEY = pytest.mark.parametrize("broker_url", ["valkey"], indirect=True)


def good(ward: Ward, word: str = "good") -> Any:
    return ward.tasks["heavy.note"].si(word)


def lost(ward: Ward, job: str) -> Any:
    """Return a job of the lane whose messages the tests lose."""
    return ward.tasks["waiting.note"].si("lost").set(task_id=job)


def closed(ward: Ward, bundle: str, swept: Swept) -> tuple[BundleState, str]:
    """Wait until a bundle is closed; return as what, and why."""
    found = eventually(
        lambda: [one for one in ward.sw.store.bundles.closed(limit=99) if one.id == bundle],
        within_s=CLOSED_WITHIN_S,
        otherwise=lambda: str(swept.rounds[-2:]),
    )
    return found[0].state, found[0].reason


def sweep_until_closed(ward: Ward, bundle: str) -> tuple[BundleState, str]:
    """Run both lanes' workers and the sweeper."""
    with ward.worker("one"), ward.worker("two", lane="waiting"), sweeping(bundles_of(ward.sw)) as swept:
        return closed(ward, bundle, swept)


def lose_once_published(ward: Ward, *, run_before: bool = False) -> None:
    """Lose one message of the lane, which a job of the other lane publishes where that has to run before."""
    if run_before:
        with ward.worker("before"):
            eventually(lambda: ward.queue("waiting").ready == 1)
            eventually(lambda: ward.queue("heavy").ready == 0)
    lose_what_waits(ward, "waiting")


@VALKEY
def test_a_chord_whose_member_nobody_has_fails_and_names_it(ward: Ward) -> None:
    ended: Any = chord([lost(ward, "lost-1"), good(ward)], good(ward, "body")).apply_async()
    lose_once_published(ward)
    state, reason = sweep_until_closed(ward, ended.parent.id)
    assert state is BundleState.FAILED
    assert reason == "1 of 2 members will never end: waiting.note lost-1 (nobody has it)"
    meta = ward.meta(ended.id)
    assert meta["status"] == "FAILURE"
    assert "Dependency lost-1 raised LostJob" in str(meta["result"])
    assert not ward.runs(ended.id)
    assert not ward.sw.store.bundles.open()


@VALKEY
def test_a_group_whose_member_nobody_has_is_ready_and_partial(ward: Ward) -> None:
    members: Any = group(lost(ward, "lost-1"), good(ward)).apply_async()
    lose_once_published(ward)
    state, reason = sweep_until_closed(ward, members.id)
    assert (state, reason.endswith(LOST)) == (BundleState.PARTIAL, True)
    assert [ward.meta(one.id)["status"] for one in members.children] == ["FAILURE", "SUCCESS"]
    assert members.ready()


@VALKEY
def test_a_chain_in_a_chord_is_followed_to_the_job_where_it_got_stuck(ward: Ward) -> None:
    stuck = chain(good(ward), lost(ward, "lost-1"), good(ward, "after").set(task_id="after-1"))
    ended: Any = chord([stuck, good(ward)], good(ward, "body")).apply_async()
    lose_once_published(ward, run_before=True)
    state, reason = sweep_until_closed(ward, ended.parent.id)
    assert (state, reason.endswith(LOST)) == (BundleState.FAILED, True)
    assert [ward.meta(job)["status"] for job in ("lost-1", "after-1", ended.id)] == ["FAILURE"] * 3


@VALKEY
def test_a_chord_inside_a_chain_inside_a_chord_fails_outwards(ward: Ward) -> None:
    inner = chord([lost(ward, "lost-1"), good(ward)], good(ward, "inner body"))
    outer: Any = chord([chain(good(ward), inner, good(ward, "after")), good(ward)], good(ward, "body")).apply_async()
    lose_once_published(ward, run_before=True)
    with ward.worker("one"), ward.worker("two", lane="waiting"), sweeping(bundles_of(ward.sw)) as swept:
        meta = ward.ended(outer.id)
        eventually(lambda: not ward.sw.store.bundles.open(), otherwise=lambda: str(swept.rounds[-2:]))
    assert meta["status"] == "FAILURE"
    assert "lost-1" in str(meta["result"])
    [inner_one] = ward.sw.store.bundles.closed(limit=9)
    assert inner_one.reason.endswith(LOST)
    assert inner_one.id != outer.parent.id


@VALKEY
def test_a_chord_that_is_a_member_of_another_fails_both(ward: Ward) -> None:
    inner = chord([lost(ward, "lost-1"), good(ward)], good(ward, "inner body").set(task_id="inner-1"))
    outer: Any = chord([inner, good(ward)], good(ward, "body")).apply_async()
    lose_once_published(ward)
    _, reason = sweep_until_closed(ward, outer.parent.id)
    # Celery tells the body of the inner one alone.
    assert reason == "its body was not told that members had failed: heavy.note inner-1 (failed)"
    assert ward.meta(outer.id)["status"] == "FAILURE"
    assert len(ward.sw.store.bundles.closed(limit=9)) == 2


@VALKEY
def test_a_chord_whose_body_is_a_group_fails_each_of_its_jobs(ward: Ward) -> None:
    body = group(good(ward, "b1"), good(ward, "b2"))
    ended: Any = chord([lost(ward, "lost-1"), good(ward)], body).apply_async()
    lose_once_published(ward)
    state, _ = sweep_until_closed(ward, ended.parent.id)
    assert state is BundleState.FAILED
    assert [ward.meta(one.id)["status"] for one in ended.children] == ["FAILURE", "FAILURE"]


@VALKEY
def test_a_chord_whose_count_expired_while_its_members_waited_fails(ward: Ward) -> None:
    ended: Any = chord([good(ward), good(ward)], good(ward, "body").set(task_id="body-1")).apply_async()
    backend: Any = ward.sw.app.backend
    backend.client.delete(backend.get_key_for_group(ended.parent.id, ".s"))
    state, reason = sweep_until_closed(ward, ended.parent.id)
    assert state is BundleState.FAILED
    assert reason == "all members are done, and its body heavy.note body-1 was never published, or lost"
    assert ward.meta("body-1")["status"] == "FAILURE"


@VALKEY
def test_a_chain_in_a_chord_of_which_celery_itself_drops_a_job_fails(ward: Ward) -> None:
    """A worker that finds a job expired by Celery's own `expires=`, or revoked, tells its chord, and not its chain."""
    late = ward.tasks["waiting.note"].si("late").set(task_id="late-1", expires=0.001)
    ended: Any = chord([chain(late, good(ward, "after")), good(ward)], good(ward, "body")).apply_async()
    state, reason = sweep_until_closed(ward, ended.parent.id)
    assert (state, reason.endswith("waiting.note late-1 (expired)")) == (BundleState.FAILED, True)
    assert ward.meta("late-1")["status"] == "REVOKED"
    assert ward.meta(ended.id)["status"] == "FAILURE"


@pytest.mark.parametrize("how", ["fails", "is_revoked", "is_dropped"])
def test_what_the_guard_or_celery_ends_needs_no_sweeper(ward: Ward, how: str) -> None:
    bad = {
        "fails": ward.tasks["heavy.fail"].si(),
        "is_revoked": good(ward, "bad"),
        "is_dropped": good(ward, "bad").set(expires=0.001),
    }[how].set(task_id=f"{how}-1")
    inner = chord([good(ward), bad], good(ward, "inner body"))
    drain = ward.sw.broker_letters()
    with ward.worker("one"):
        held_up = ward.tasks["heavy.wait_at_gate"].delay("gate").id
        eventually(lambda: ward.runs(held_up))
        ended: Any = chord(
            [chain(good(ward), inner, good(ward, "after")), good(ward)], good(ward, "body")
        ).apply_async()
        if how == "is_revoked":
            ward.sw.app.control.revoke(f"{how}-1")
        ward.open("gate")
        eventually(
            lambda: drain() >= 0 and ward.meta(ended.id)["status"] == "FAILURE", otherwise=lambda: ward.said("one")
        )
    assert f"Dependency {how}-1 raised" in str(ward.meta(ended.id)["result"])
    assert not ward.runs(ended.id)


def test_without_a_look_into_the_queues_it_is_closed_once_its_window_is_over(ward: Ward) -> None:
    header = ward.header(start_by=ward.sw.clock.calendar() + timedelta(seconds=20))
    members = [lost(ward, "lost-1").set(headers=header), good(ward).set(headers=header)]
    ended: Any = chord(members, good(ward, "body")).apply_async()
    lose_once_published(ward)
    sweeper = bundles_of(ward.sw)
    sweeper.placed, sweeper.grace = (lambda: None), timedelta(seconds=1)
    with ward.worker("one"), ward.worker("two", lane="waiting"), sweeping(sweeper) as swept:
        state, reason = closed(ward, ended.parent.id, swept)
    assert (state, reason.endswith(LOST)) == (BundleState.FAILED, True)
    assert ward.meta(ended.id)["status"] == "FAILURE"


def test_a_chord_whose_publisher_is_killed_in_the_middle_fails_and_names_what_never_went_out(ward: Ward) -> None:
    # RabbitMQ cannot tell without its management interface: there it is closed once its window is over.
    start_by = ward.sw.clock.calendar() + timedelta(seconds=20)
    env = {**os.environ, **ward.place.environment, publisher.START_BY: start_by.isoformat()}
    with running(publisher.__name__, env=env, log=ward.file("publisher.log")) as run:
        eventually(lambda: ward.file("stands_still").exists(), otherwise=lambda: ward.said("publisher"))
        run.kill()
        run.wait()
    [noted] = ward.sw.store.bundles.find(ward.sw.store.bundles.open())
    sweeper = bundles_of(ward.sw)
    sweeper.grace = timedelta(seconds=1)
    with ward.worker("one"), sweeping(sweeper) as swept:
        ward.done("first-1", "second-1")
        state, reason = closed(ward, noted.id, swept)
    assert state is BundleState.FAILED
    assert reason == "its publisher broke off: 1 of 3 members will never end: third-1 (nobody has it)"
    assert [ward.meta(job)["status"] for job in ("third-1", "body-1")] == ["FAILURE"] * 2
    assert not ward.runs("body-1")


@pytest.mark.parametrize("broker_url", [pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)], indirect=True)
def test_rabbitmq_says_that_nobody_has_it_where_its_management_interface_is_known(
    rabbitmq_node: RabbitMQNode, fresh_valkey_url: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACKWATER_RABBITMQ_MANAGEMENT_URL", rabbitmq_node.management_url)
    with ward_at(replace(place, broker_url=rabbitmq_node.virtual_host(), backend_url=fresh_valkey_url)) as ward:
        ended: Any = chord([lost(ward, "lost-1"), good(ward)], good(ward, "body")).apply_async()
        lose_once_published(ward)
        state, reason = sweep_until_closed(ward, ended.parent.id)
        assert (state, reason.endswith(LOST)) == (BundleState.FAILED, True)
        assert ward.meta(ended.id)["status"] == "FAILURE"


def test_what_goes_on_or_ends_by_itself_is_left_alone_and_leaves_nothing_behind(ward: Ward) -> None:
    gate = ward.tasks["waiting.wait_at_gate"]
    slow: Any = chord([gate.si("gate"), good(ward)], good(ward, "body")).apply_async()
    waits: Any = chord([ward.tasks["waiting.retry_later"].si(20), good(ward)], good(ward, "body")).apply_async()
    fails: Any = chord([ward.tasks["heavy.fail"].si(), good(ward)], good(ward, "body")).apply_async()
    sweeper = bundles_of(ward.sw)
    looked_for = 2 * sweeper.missing_after + sweeper.lives_for + timedelta(seconds=5)
    with ward.worker("one"), ward.worker("two", lane="waiting", slots=2), sweeping(sweeper) as swept:
        until = ward.sw.clock.run() + looked_for
        eventually(lambda: ward.sw.clock.run() > until)
        assert swept.found == 0
        ward.open("gate")
        ward.done(slow.id, waits.id)
        assert ward.ended(fails.id)["status"] == "FAILURE"
        eventually(lambda: not ward.sw.store.bundles.open())
    assert not ward.sw.store.bundles.closed(limit=9)

"""Whole workers that die by kill -9 with a job in their hands."""

import signal
from contextlib import ExitStack
from typing import Any

import pytest
from tests.integration.cases.ward import Ward
from tests.integration.celery.spine import eventually

from slackwater.adapters.brokers.recovery import open_recovery
from slackwater.core.liveness import Owner

WITHIN_S = 30
"""Three times what is promised."""


def test_a_job_in_the_hands_of_a_worker_that_is_killed_runs_again(ward: Ward) -> None:
    with ward.worker("one") as one, ward.worker("two") as two:
        job = ward.tasks["heavy.wait_at_gate"].delay("gate").id
        holder = ward.holder(job, one, two)

        holder.send_signal(signal.SIGKILL)

        runs: list[Any] = eventually(lambda: len(found := ward.runs(job)) > 1 and found, within_s=WITHIN_S)
        ward.open("gate")
        assert ward.ended(job)["status"] == "SUCCESS"
        assert [run["redelivered"] for run in runs] == [False, True]
        eventually(lambda: len(ward.sw.store.presence.all()) == 1, within_s=WITHIN_S)
    assert len(ward.runs(job)) == 2


def test_a_worker_that_comes_after_the_only_one_died_takes_its_jobs_over(ward: Ward) -> None:
    with ExitStack() as first:
        one = first.enter_context(ward.worker("one"))
        job = ward.tasks["heavy.wait_at_gate"].delay("gate").id
        ward.holder(job, one).send_signal(signal.SIGKILL)
    with ward.worker("one"):
        eventually(lambda: len(ward.runs(job)) == 2, within_s=WITHIN_S)
        ward.open("gate")
        assert ward.ended(job)["status"] == "SUCCESS"


@pytest.mark.parametrize("broker_url", ["valkey"], indirect=True)
def test_a_stopped_worker_that_the_broker_sees_keeps_its_job_and_ends_it_once(ward: Ward) -> None:
    with (
        ward.worker("one", SLACKWATER_FROZEN_AFTER="600") as one,
        ward.worker("two", SLACKWATER_FROZEN_AFTER="600") as two,
    ):
        job = ward.tasks["heavy.wait_at_gate"].delay("gate").id
        holder = ward.holder(job, one, two)
        holder.send_signal(signal.SIGSTOP)
        try:
            lapsed = ward.sw.settings.presence_lives_for
            now = ward.sw.clock.run
            eventually(
                lambda: any(now() > each.refreshed_at + 1.5 * lapsed for each in ward.sw.store.presence.all()),
                within_s=WITHIN_S,
            )
        finally:
            holder.send_signal(signal.SIGCONT)
        ward.open("gate")
        assert ward.ended(job)["status"] == "SUCCESS"
    assert len(ward.runs(job)) == 1


@pytest.mark.parametrize("broker_url", ["valkey"], indirect=True)
def test_workers_that_end_in_an_orderly_way_leave_no_owner_behind(ward: Ward) -> None:
    recovery = open_recovery(ward.sw.app, realm=ward.sw.realm)
    with ward.worker("one"):
        [presence] = ward.sw.store.presence.all()
        owner = Owner(worker="one@here", boot=presence.boot)
        assert recovery.owners() == {owner: 0}
        assert recovery.connections(owner)

    assert recovery.owners() == {}
    assert recovery.connections(owner) == 0
    recovery.close()

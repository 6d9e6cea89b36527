"""Whole workers that die by kill -9 with a job in their hands."""

import gc
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil  # type: ignore[import-untyped]
import pytest
from tests.integration.celery.application import MODULE, Place, make
from tests.integration.celery.spine import ROOT, Spine, close, eventually

from slackwater.adapters.brokers.recovery import open_recovery
from slackwater.core.liveness import Owner
from slackwater.local import PostgreSQL

WITHIN_S = 30
"""Three times what is promised."""


@pytest.fixture(params=["valkey", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)])
def ward(
    request: pytest.FixtureRequest, fresh_valkey_url: str, postgres_server: PostgreSQL, tmp_path: Path
) -> Iterator[Spine]:
    broker = fresh_valkey_url if request.param == "valkey" else request.getfixturevalue("rabbitmq_url")
    place = Place(
        broker_url=broker,
        backend_url=fresh_valkey_url,
        store_url=postgres_server.url,
        prefix=f"t{uuid4().hex[:8]}_",
        folder=str(tmp_path),
    )
    sw = make(place)
    sw.store.migrate()
    yield Spine(place=place, sw=sw)
    # Results in circles talk to the backend when they are collected: while it is there.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
        close(sw)
        gc.collect()


@contextmanager
def worker(spine: Spine, name: str, *, lane: str = "heavy", slots: int = 1) -> Iterator[subprocess.Popen[bytes]]:
    """Run Celery's own worker on a lane's queue, and wait until it is there."""
    line = [sys.executable, "-m", "celery", "-A", MODULE, "worker", "-Q", spine.sw.queues[lane]]
    line += ["-c", str(slots), "-n", f"{name}@here", "--without-mingle", "--without-gossip"]
    env = {**os.environ, **spine.place.environment}
    with (
        (Path(spine.place.folder) / f"{name}.log").open("ab") as log,
        subprocess.Popen(line, cwd=ROOT, env=env, stdout=log, stderr=log) as run,
    ):
        try:
            eventually(lambda: f"{name}@here" in {one.worker for one in spine.sw.store.presence.all()}, within_s=60)
            yield run
        finally:
            run.terminate()
            run.wait(60)


def holder_of(spine: Spine, job: str, *runs: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
    """Wait until a job's body runs; return the worker that runs it."""
    [ran] = eventually(lambda: spine.runs(job), within_s=60)
    above = {ran["pid"], *(each.pid for each in psutil.Process(ran["pid"]).parents())}
    return next(run for run in runs if run.pid in above)


def test_a_job_in_the_hands_of_a_worker_that_is_killed_runs_again(ward: Spine) -> None:
    with worker(ward, "one") as one, worker(ward, "two") as two:
        job = ward.tasks["heavy.wait_at_gate"].delay("gate").id
        holder = holder_of(ward, job, one, two)

        holder.send_signal(signal.SIGKILL)

        runs: list[Any] = eventually(lambda: len(found := ward.runs(job)) > 1 and found, within_s=WITHIN_S)
        ward.open("gate")
        assert ward.ended(job)["status"] == "SUCCESS"
        assert [run["redelivered"] for run in runs] == [False, True]
        eventually(lambda: len(ward.sw.store.presence.all()) == 1, within_s=WITHIN_S)
    assert len(ward.runs(job)) == 2


def test_a_worker_that_comes_after_the_only_one_died_takes_its_jobs_over(ward: Spine) -> None:
    with ExitStack() as first:
        one = first.enter_context(worker(ward, "one"))
        job = ward.tasks["heavy.wait_at_gate"].delay("gate").id
        holder_of(ward, job, one).send_signal(signal.SIGKILL)
    with worker(ward, "one"):
        eventually(lambda: len(ward.runs(job)) == 2, within_s=WITHIN_S)
        ward.open("gate")
        assert ward.ended(job)["status"] == "SUCCESS"


@pytest.mark.parametrize("ward", ["valkey"], indirect=True)
def test_a_stopped_worker_that_the_broker_sees_keeps_its_job_and_ends_it_once(ward: Spine) -> None:
    with worker(ward, "one") as one, worker(ward, "two") as two:
        job = ward.tasks["heavy.wait_at_gate"].delay("gate").id
        holder = holder_of(ward, job, one, two)
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


@pytest.mark.parametrize("ward", ["valkey"], indirect=True)
def test_workers_that_end_in_an_orderly_way_leave_no_owner_behind(ward: Spine) -> None:
    recovery = open_recovery(ward.sw.app, realm=ward.sw.realm)
    with worker(ward, "one"):
        [presence] = ward.sw.store.presence.all()
        owner = Owner(worker="one@here", boot=presence.boot)
        assert recovery.owners() == {owner: 0}
        assert recovery.connections(owner)

    assert recovery.owners() == {}
    assert recovery.connections(owner) == 0
    recovery.close()

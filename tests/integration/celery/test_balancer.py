"""The balancer's parts and the worker's settings, on real servers."""

from threading import Event, Thread

import psutil  # type: ignore[import-untyped]
from tests.integration.celery.application import LANES, Place, make
from tests.integration.celery.spine import Spine, close, eventually

from slackwater import OccurrenceState
from slackwater.cli.balancer import balancer_of
from slackwater.cli.sweepers import sweepers_of
from slackwater.core.job import JobState


def test_twin_balancers_bring_an_occurrence_from_due_to_done_once(spine: Spine) -> None:
    place = Place(**{**vars(spine.place), "beat": "2"})
    stop = Event()
    twins = [make(place) for _ in range(2)]
    threads = [Thread(target=balancer_of(sw).run, args=(stop,)) for sw in twins]
    since = spine.sw.clock.calendar()
    for thread in threads:
        thread.start()

    def done() -> list[str]:
        return [
            str(one.id)
            for one in spine.sw.store.occurrences.since(since)
            if one.entry == "sweep" and one.state is OccurrenceState.DONE
        ]

    jobs = eventually(lambda: found if len(found := done()) >= 2 else None)
    stop.set()
    for thread in threads:
        thread.join(10)
    for sw in twins:
        close(sw)
    for job in jobs:
        assert len(spine.runs(job)) == 1
        assert [len(spine.runs(child)) for child in spine.meta(job)["result"]] == [1, 1, 1]
    settled = [one for one in spine.sw.store.occurrences.since(since) if str(one.id) in jobs]
    assert [one.jobs for one in settled] == [{JobState.DONE: 3}] * len(settled)
    assert spine.sw.store.readings.between(since, spine.sw.clock.run())


def test_each_lane_runs_its_canary(spine: Spine) -> None:
    sweepers = sweepers_of(spine.sw)
    [canaries] = [one.sweeper for one in sweepers.rounds if one.name == "canaries"]
    since = spine.sw.clock.run()
    canaries.sweep()

    def answered() -> set[str]:
        known = spine.sw.store.canaries.all()
        return {one.lane for one in known if one.answered_at is not None and one.answered_at > since}

    eventually(lambda: answered() == set(LANES))
    heard = {one.lane: str(one.worker) for one in spine.sw.store.canaries.all()}
    assert {lane: worker.partition("@")[0] for lane, worker in heard.items()} == {lane: lane for lane in LANES}


def test_a_host_lanes_worker_and_its_pool_processes_yield_the_cores(spine: Spine) -> None:
    worker = psutil.Process(spine.presence("heavy").pid)
    children = worker.children()
    assert len(children) >= spine.sw.lanes["heavy"].slots
    assert {each.nice() for each in (worker, *children)} == {10}
    assert psutil.Process(spine.presence("waiting").pid).nice() == 0

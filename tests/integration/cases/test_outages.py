"""The broker or the database is away at the worst moment."""

import json
import socket
from dataclasses import replace
from datetime import timedelta

import pytest
import redis
from tests.contract.private_server import PrivateServer
from tests.integration.cases.application import QUICK
from tests.integration.cases.ward import Ward, lanes, other_pairs, pairs, ward_at
from tests.integration.celery.application import Place
from tests.integration.celery.spine import eventually

from slackwater.adapters.brokers.recovery import open_recovery
from slackwater.adapters.brokers.unacked import keys_of
from slackwater.core.liveness import Owner
from slackwater.testing import FaultProxy

TIME_TO_LIVE = timedelta(seconds=float(QUICK["SLACKWATER_PRESENCE_LIVES_FOR"]))
AGAIN_WITHIN_S = 180
"""Three times what a lane may take to consume again after its broker has come back."""


@pairs
def test_a_retry_that_cannot_be_published_is_not_lost(ward: Ward, link: FaultProxy, lane: str) -> None:
    with ward.worker("one", lane=lane, SPINE_BROKER_URL=link.url_of(ward.place.broker_url)):
        job = ward.tasks[f"{lane}.retry_at_once"].delay("gate").id
        eventually(lambda: ward.runs(job))
        link.refuse()
        ward.open("gate")
        eventually(lambda: ward.meta(job)["status"] == "RETRY", otherwise=lambda: ward.said("one"))
        link.accept()
        eventually(
            lambda: ward.meta(job)["status"] == "SUCCESS", within_s=AGAIN_WITHIN_S, otherwise=lambda: ward.said("one")
        )


@other_pairs
def test_a_keyed_body_that_ran_while_the_connection_broke_runs_once(ward: Ward, link: FaultProxy, lane: str) -> None:
    with ward.worker("one", lane=lane, slots=2, SPINE_BROKER_URL=link.url_of(ward.place.broker_url)):
        job = ward.tasks[f"{lane}.keyed"].delay("effect", "gate").id
        eventually(lambda: ward.runs(job))
        link.drop()
        ward.done(ward.tasks[f"{lane}.note"].delay(1).id)
        ward.open("gate")
        ward.done(job)
        eventually(lambda: ward.queue(lane).unacked in (0, None), within_s=AGAIN_WITHIN_S)
        assert len(ward.runs(job)) == 1


@lanes
@pytest.mark.parametrize("broker_url", ["valkey"], indirect=True)
def test_a_plain_body_that_ran_while_its_broker_was_away_runs_once(ward: Ward, link: FaultProxy, lane: str) -> None:
    with ward.worker("one", lane=lane, slots=3, SPINE_BROKER_URL=link.url_of(ward.place.broker_url)):
        ends, lasts = (ward.tasks[f"{lane}.wait_at_gate"].delay(gate).id for gate in ("gate", "other"))
        eventually(lambda: ward.runs(ends) and ward.runs(lasts))
        link.refuse()
        eventually(lambda: "Cannot connect" in ward.said("one"))
        ward.open("gate")
        ward.done(ends)
        link.accept()
        ward.done(ward.tasks[f"{lane}.note"].delay(1).id)
        eventually(lambda: ward.unacked() == 1, within_s=AGAIN_WITHIN_S)
        ward.open("other")
        ward.done(lasts)
        eventually(lambda: ward.unacked() == 0, within_s=AGAIN_WITHIN_S)
    assert [len(ward.runs(job)) for job in (ends, lasts)] == [1, 1]


@lanes
@pytest.mark.parametrize("broker_url", ["valkey"], indirect=True)
def test_a_body_that_ends_while_the_result_backend_is_away_is_told_as_done(
    ward: Ward, results_link: FaultProxy, lane: str
) -> None:
    away = results_link.url_of(ward.place.backend_url)
    with ward.worker("one", lane=lane, SPINE_BACKEND_URL=away):
        job = ward.tasks[f"{lane}.wait_at_gate"].delay("gate").id
        eventually(lambda: ward.runs(job))
        results_link.refuse()
        ward.open("gate")
        # Celery itself would tell it as failed now; one that was never told could not be told from one that runs on.
        log = ward.file("one.log")
        eventually(lambda: "Failed operation _store_result" in log.read_text(), otherwise=lambda: ward.said("one"))
        results_link.accept()
        ward.done(job, ward.tasks[f"{lane}.note"].delay(1).id)
        assert len(ward.runs(job)) == 1
        eventually(lambda: ward.unacked() == 0)


@pytest.mark.parametrize("broker_url", ["valkey"], indirect=True)
def test_a_job_that_comes_to_be_late_while_it_waits_for_the_store_does_not_start(
    ward: Ward, store_link: tuple[FaultProxy, str]
) -> None:
    link, url = store_link
    with ward.worker("one", lane="waiting", SPINE_STORE_URL=url):
        link.stall()
        start_by = ward.sw.clock.calendar() + timedelta(seconds=2)
        job = ward.tasks["waiting.keyed"].apply_async(("effect",), headers=ward.header(start_by=start_by)).id
        eventually(lambda: ward.unacked() == 1)
        eventually(lambda: ward.sw.clock.calendar() > start_by)
        link.flow()
        assert str(ward.ended(job)["result"]) == "expired: late"
        assert not ward.runs(job)
        assert not ward.preruns(job)
        again = ward.tasks["waiting.keyed"].delay("effect").id
        ward.done(again)
        assert len(ward.runs(again)) == 1, "its key is free"


@pytest.mark.parametrize("broker_url", ["valkey"], indirect=True)
def test_a_job_that_comes_to_be_late_while_its_start_cannot_be_told_does_not_run(
    ward: Ward, results_link: FaultProxy
) -> None:
    away = results_link.url_of(ward.place.backend_url)
    with ward.worker("one", lane="waiting", SPINE_BACKEND_URL=away):
        results_link.refuse()
        start_by = ward.sw.clock.calendar() + timedelta(seconds=2)
        job = ward.tasks["waiting.note"].apply_async((1,), headers=ward.header(start_by=start_by)).id
        eventually(lambda: ward.preruns(job))
        eventually(lambda: ward.sw.clock.calendar() > start_by)
        results_link.accept()
        assert str(ward.ended(job)["result"]) == "expired: late"
        assert not ward.runs(job)
        eventually(lambda: ward.unacked() == 0)


@pytest.mark.parametrize("broker_url", ["valkey"], indirect=True)
def test_a_body_whose_next_try_is_sent_does_not_come_again_itself_though_the_store_is_away(
    ward: Ward, store_link: tuple[FaultProxy, str]
) -> None:
    link, url = store_link
    with socket.create_server(("127.0.0.1", 0)) as peer:
        peer.settimeout(AGAIN_WITHIN_S)
        where = f"http://127.0.0.1:{peer.getsockname()[1]}"
        with ward.worker("one", lane="waiting", SPINE_STORE_URL=url, SLACKWATER_STORE_PATIENCE="1", CASES_PEER=where):
            job = ward.tasks["waiting.file"].delay("7").id
            asked, _ = peer.accept()
            link.refuse()
            asked.close()  # an error that is worth another try
            log = ward.file("one.log")
            eventually(lambda: "its end is not told" in log.read_text(), otherwise=lambda: ward.said("one"))
            link.accept()
            asked, _ = peer.accept()
            with asked:
                asked.recv(1024)
                asked.sendall(b'HTTP/1.0 200 OK\r\n\r\n{"filing": "F-7"}')
            ward.done(job)
            eventually(lambda: ward.unacked() == 0)
        assert [run["redelivered"] for run in ward.runs(job)] == [False, False]


@pytest.mark.parametrize("broker_url", ["valkey"], indirect=True)
def test_what_lies_in_a_workers_hands_unknown_to_it_comes_back(ward: Ward) -> None:
    with ward.worker("one"):
        job = ward.tasks["heavy.note"].apply_async((1,), queue="elsewhere").id
        [presence] = ward.sw.store.presence.all()
        recovery = open_recovery(ward.sw.app, realm=ward.sw.realm)
        owner = Owner(worker=presence.worker, boot=presence.boot)
        with redis.Redis.from_url(ward.place.broker_url) as client:
            message = json.loads(client.lpop("elsewhere"))
            # As kombu keeps what it fetched over a connection that then broke.
            queue = ward.sw.queues["heavy"]
            client.hset(keys_of(owner).messages, "tag", json.dumps([message, queue, queue]))
        ward.done(job)
        assert [run["redelivered"] for run in ward.runs(job)] == [True]
        eventually(lambda: not recovery.delivered(owner))
        recovery.close()
    assert ward.sw.store.runs.runs([job])[job].attempts == 1


def test_a_database_that_comes_back_after_three_times_to_live_has_nothing_run_again(
    private_database: PrivateServer, database_url: str, place: Place
) -> None:
    with (
        ward_at(replace(place, store_url=database_url)) as ward,
        ward.worker("one") as one,
        ward.worker("two") as two,
    ):
        plain, leased = (
            ward.tasks["heavy.wait_at_gate"].delay("gate").id,
            ward.tasks["heavy.book"].delay("7", "gate").id,
        )
        assert {ward.holder(job, one, two) for job in (plain, leased)} == {one, two}
        away_until = ward.sw.clock.run() + 3 * TIME_TO_LIVE
        private_database.stop()
        eventually(lambda: ward.sw.clock.run() > away_until)
        private_database.start()
        back_until = ward.sw.clock.run() + 2 * TIME_TO_LIVE
        eventually(lambda: ward.sw.clock.run() > back_until)
        assert len(ward.sw.store.presence.all()) == 2
        ward.open("gate")
        ward.done(plain, leased)
        assert [len(ward.runs(job)) for job in (plain, leased)] == [1, 1]
        assert [job for job, _ in ward.committed()] == [leased]

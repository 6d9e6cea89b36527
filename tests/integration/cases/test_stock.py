"""The controls: what plain Celery does in the same cases (acks_late, reject_on_worker_lost, prefetch multiplier 1)."""

import pytest
from tests.integration.cases.gateway import Gateway
from tests.integration.cases.ward import Ward
from tests.integration.celery.spine import eventually

from slackwater.testing import FaultProxy

VISIBLE_AGAIN_S = "5"
ATTEMPTS = 3
"""How often the guard has a body started that never comes to an end."""

pytestmark = pytest.mark.parametrize("broker_url", ["valkey"], indirect=True)


def test_control_a_body_that_kills_its_process_is_started_for_ever(ward: Ward) -> None:
    with ward.stock_worker("stock"):
        job = ward.tasks["kills_itself"].delay(ATTEMPTS).id
        ward.done(job)
    assert len(ward.runs(job)) == ATTEMPTS + 1


def test_control_a_long_body_is_started_again_beside_itself(ward: Ward) -> None:
    with (
        ward.stock_worker("one", STOCK_VISIBILITY_TIMEOUT=VISIBLE_AGAIN_S),
        ward.stock_worker("two", STOCK_VISIBILITY_TIMEOUT=VISIBLE_AGAIN_S),
    ):
        job = ward.tasks["heavy.wait_at_gate"].delay("gate").id
        first, second = eventually(lambda: len(found := ward.runs(job)) > 1 and found[:2])
        assert first["pid"] != second["pid"]
        assert ward.meta(job)["status"] not in {"SUCCESS", "FAILURE"}
        ward.open("gate")
        ward.done(job)


def test_control_a_call_whose_answer_is_lost_files_twice(ward: Ward, gateway: Gateway) -> None:
    with ward.stock_worker("stock", CASES_PEER=gateway.url):
        # By the name alone: the application's own task would announce its key.
        job = ward.sw.app.send_task("heavy.file", ("run",), queue=ward.sw.queues["heavy"]).id
        ward.done(job)
    assert len(gateway.filings("run")) == 2


def test_control_a_retry_that_cannot_be_published_is_lost(ward: Ward, link: FaultProxy) -> None:
    with ward.stock_worker("stock", SPINE_BROKER_URL=link.url_of(ward.place.broker_url)):
        job = ward.tasks["heavy.retry_at_once"].delay("gate").id
        eventually(lambda: ward.runs(job))
        link.refuse()
        ward.open("gate")
        log = ward.file("stock.log")
        eventually(lambda: "reject requeue=False" in log.read_text(), otherwise=lambda: ward.said("stock"))
        link.accept()
        assert ward.ended(job)["status"] == "FAILURE"
        ward.done(ward.tasks["heavy.wait_at_gate"].delay("gate").id)
    assert len(ward.runs(job)) == 1
    assert ward.queue("heavy").ready == 0

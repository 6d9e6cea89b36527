"""RabbitMQ's own dead letters: drained with their reason, and their jobs ended for everybody who waits."""

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery import Celery, chord
from tests.integration.celery.spine import eventually

from slackwater import Lane, Settings, Slackwater
from slackwater.adapters.brokers.dead_letters import BrokerLetter, Drain
from slackwater.adapters.memory import MemoryStore
from slackwater.core.job import JobState
from slackwater.errors import ConfigurationError

pytestmark = pytest.mark.rabbitmq
Make = Callable[[], Slackwater]


def noop(*args: Any) -> None:
    """Do nothing."""


@pytest.fixture
def make(rabbitmq_url: str, rabbitmq_prefix: str, fresh_valkey_url: str) -> Iterator[Make]:
    made: list[Celery] = []

    def make() -> Slackwater:
        app = Celery("letters", broker=rabbitmq_url, backend=fresh_valkey_url, set_as_current=False)
        made.append(app)
        sw = Slackwater(
            app,
            store=MemoryStore(),
            lanes=[Lane("till", slots=1)],
            prefix=rabbitmq_prefix,
            settings=Settings(rabbitmq_delivery_limit=2),
        )
        add: Any = app.task(name="noop", lane="till", shared=False)
        add(noop)
        return sw

    yield make
    # Results in circles talk to the backend when they are collected: while it is there.
    gc.collect()
    for app in made:
        backend: Any = app.backend
        backend.result_consumer.stop()
        backend.client.close()
        app.close()


@pytest.fixture
def sw(make: Make) -> Slackwater:
    return make()


def take(sw: Slackwater, act: Callable[[Any, Any], None], *, times: int = 1) -> None:
    """Take one message from the lane, and do something with it, again and again."""
    with sw.app.connection_for_read() as connection:
        channel: Any = connection.channel()
        for _ in range(times):
            raw = eventually(lambda: channel.basic_get(sw.queues["till"]), within_s=10)
            act(channel, raw)


def reject(channel: Any, raw: Any) -> None:
    channel.basic_reject(raw.delivery_tag, requeue=False)


def put_back(channel: Any, raw: Any) -> None:
    channel.basic_reject(raw.delivery_tag, requeue=True)


def drained(sw: Slackwater, prefix: str, *, count: int = 1) -> list[BrokerLetter]:
    letters: list[BrokerLetter] = []
    drain = Drain(sw.app, prefix=prefix)
    eventually(lambda: drain.drain(letters.append) + len(letters) >= count and len(letters) >= count, within_s=15)
    drain.close()
    return letters


def test_a_rejected_message_is_drained_whole_with_its_reason(sw: Slackwater, rabbitmq_prefix: str) -> None:
    job = sw.app.tasks["noop"].apply_async((1, "Käse"), headers={"tenant": "t1"}, priority=3).id
    bodies: list[Any] = []

    def note_and_reject(channel: Any, raw: Any) -> None:
        bodies.append(raw.body)
        reject(channel, raw)

    take(sw, note_and_reject)

    [letter] = drained(sw, rabbitmq_prefix)

    assert (letter.reason, letter.message.job, letter.message.task) == ("rejected", job, "noop")
    assert letter.message.queue == sw.queues["till"]
    assert letter.message.body.decode() == bodies[0]
    assert letter.message.headers["tenant"] == "t1"
    assert not [name for name in letter.message.headers if name.startswith("x-")]
    assert letter.message.properties["priority"] == 3


def test_a_letter_whose_handler_failed_comes_again_and_one_that_was_handled_does_not(
    sw: Slackwater, rabbitmq_prefix: str
) -> None:
    sw.app.tasks["noop"].delay()
    take(sw, reject)
    drain = Drain(sw.app, prefix=rabbitmq_prefix)

    def fail(letter: BrokerLetter) -> None:
        raise LookupError(letter.message.job)

    def fails() -> bool:
        try:
            return drain.drain(fail) < 0
        except LookupError:
            return True

    eventually(fails, within_s=15)
    drain.close()

    assert len(drained(sw, rabbitmq_prefix)) == 1
    assert drain.drain(fail) == 0
    drain.close()


def test_a_message_that_expired_in_its_queue_ends_as_expired(sw: Slackwater) -> None:
    job = sw.app.tasks["noop"].apply_async((1,), expires=0.2).id
    drain = sw.broker_letters()

    eventually(drain, within_s=15)

    meta = sw.app.backend.get_task_meta(job, cache=False)
    assert (meta["status"], str(meta["result"])) == ("REVOKED", "expired: broker")
    ending = sw.store.endings.find([job])[job]
    assert (ending.state, ending.reason, ending.lane) == (JobState.EXPIRED, "broker", "till")
    assert sw.store.dead_letters.get(job) is None


def test_a_message_that_was_delivered_too_often_is_dead_and_its_letter_kept(sw: Slackwater) -> None:
    job = sw.app.tasks["noop"].delay(1).id
    take(sw, put_back, times=3)
    drain = sw.broker_letters()

    eventually(drain, within_s=15)

    letter = sw.store.dead_letters.get(job)
    assert letter is not None
    assert (letter.job, letter.cause, letter.lane, letter.state) == (job, "delivery_limit", "till", JobState.DEAD)
    assert letter.message is not None
    assert letter.published_at is not None
    meta = sw.app.backend.get_task_meta(job, cache=False)
    assert meta["status"] == "FAILURE"
    assert "it was delivered more often" in str(meta["result"])


def test_a_job_that_has_ended_keeps_its_end(sw: Slackwater) -> None:
    job = sw.app.tasks["noop"].delay(1).id
    sw.app.backend.mark_as_done(job, 7)
    take(sw, reject)
    drain = sw.broker_letters()

    eventually(drain, within_s=15)

    assert sw.app.backend.get_task_meta(job, cache=False)["result"] == 7
    assert sw.store.dead_letters.get(job) is None


def test_a_chord_learns_of_its_members_that_expired_in_their_queue(sw: Slackwater) -> None:
    member = sw.app.tasks["noop"]
    result: Any = chord([member.si(1).set(expires=0.2), member.si(2).set(expires=0.2)])(member.si(3))
    drain = sw.broker_letters()

    eventually(drain, within_s=15)

    def told() -> bool:
        drain()
        return bool(sw.app.backend.get_task_meta(result.id, cache=False)["status"] == "FAILURE")

    eventually(told, within_s=15)


def test_a_queue_that_is_there_with_other_arguments_is_refused_in_one_line(sw: Slackwater) -> None:
    name = sw.queues["till"]
    with sw.app.connection_for_write() as connection:
        channel: Any = connection.default_channel
        channel.queue_declare(name, durable=True, auto_delete=False)

    with pytest.raises(ConfigurationError) as refused:
        sw.check_broker(["till"])

    [line] = refused.value.findings
    assert line.startswith(f"queue {name}: is there with other arguments")
    assert f"rabbitmqctl delete_queue {name}" in line
    assert "\n" not in line


def test_the_same_application_twice_agrees_about_its_queues(make: Make) -> None:
    for _ in range(2):
        make().check_broker(["till"])

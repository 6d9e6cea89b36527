"""What Slackwater sets on an application, and what it refuses to find set otherwise."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery
from kombu import Queue

from slackwater import Lane, Slackwater
from slackwater.adapters.brokers.unacked import NEVER_S, keys_of
from slackwater.adapters.celery.configuration import DEMANDED, conflicts
from slackwater.adapters.celery.owning import own
from slackwater.adapters.memory import MemoryStore
from slackwater.core.liveness import Owner
from slackwater.errors import ConfigurationError

MakeApp = Callable[..., Celery]
LANES = (Lane("till", slots=40), Lane("bakery", slots=2))
REDIS = "redis://127.0.0.1:1/0"
CONFLICTS: list[tuple[str, Any, str]] = [
    ("task_acks_late", False, "needs True (a job must not be lost with its worker); remove the line"),
    ("task_reject_on_worker_lost", False, "needs True (a job must not be lost with its pool process)"),
    ("worker_prefetch_multiplier", 4, "needs 1 (a waiting job must not be hostage of a busy worker)"),
    ("task_track_started", False, "needs True"),
    ("task_ignore_result", True, "needs False (the ledger reads how each job ended)"),
    ("task_protocol", 1, "needs 2"),
    ("task_always_eager", True, "needs False (work runs in lanes)"),
    ("result_backend", None, "set result_backend"),
    ("result_backend", "rpc://", "set result_backend to a Valkey or Redis URL"),
]


def around(app: Celery, **options: Any) -> Slackwater:
    return Slackwater(app, store=MemoryStore(), lanes=LANES, **options)


@pytest.mark.parametrize(("name", "value", "said"), CONFLICTS)
def test_a_setting_that_conflicts_is_refused_in_one_line_and_nothing_is_changed(
    make_app: MakeApp, name: str, value: Any, said: str
) -> None:
    app = make_app(**{"broker_url": REDIS, name: value})
    with pytest.raises(ConfigurationError) as refused:
        around(app)
    (line,) = refused.value.findings
    assert line.startswith(f"setting {name}")
    assert said in line
    assert "\n" not in line
    assert app.conf[name] == value
    others = {setting for setting in DEMANDED if setting != name and app.conf.value_set_for(setting)}
    assert (others, app.conf.task_queues, app.conf.task_routes) == (set(), None, None)
    assert not hasattr(app, "slackwater")


def test_all_conflicts_are_told_at_once(make_app: MakeApp) -> None:
    with pytest.raises(ConfigurationError) as refused:
        around(make_app(task_acks_late=False, task_always_eager=True))
    assert len(refused.value.findings) == 2


@pytest.mark.parametrize(("name", "value", "said"), CONFLICTS)
def test_a_conflict_that_is_set_later_is_found_by_a_check(make_app: MakeApp, name: str, value: Any, said: str) -> None:
    app = make_app(broker_url=REDIS)
    sw = around(app)
    sw.check()
    app.conf[name] = value
    with pytest.raises(ConfigurationError, match=name):
        sw.check()


def test_what_the_lanes_need_is_set(make_app: MakeApp) -> None:
    app = make_app(broker_url=REDIS, task_acks_late=True)
    around(app)
    assert {name: app.conf[name] for name in DEMANDED} == {name: value for name, (value, _) in DEMANDED.items()}
    assert app.conf.redis_max_connections >= 60
    assert not conflicts(app)


def test_a_worker_owns_what_it_takes_and_its_messages_never_become_visible_by_themselves(make_app: MakeApp) -> None:
    app = make_app(broker_url=REDIS, broker_transport_options={"visibility_timeout": 60, "global_keyprefix": "x"})
    around(app)
    owner = Owner(worker="till@one", boot=uuid4())

    own(app, owner)

    options = app.conf.broker_transport_options
    assert options["visibility_timeout"] == NEVER_S
    assert options["unacked_key"] == keys_of(owner).messages
    assert options["global_keyprefix"] == "x"


def test_rabbitmq_gets_confirmed_publishing_and_quorum_queues(make_app: MakeApp) -> None:
    app = make_app(broker_url="amqp://127.0.0.1:1//")
    around(app)
    assert app.conf.broker_transport_options == {"confirm_publish": True}
    assert {queue.queue_arguments["x-queue-type"] for queue in app.conf.task_queues} == {"quorum"}
    assert {queue.queue_arguments["x-delivery-limit"] for queue in app.conf.task_queues} == {20}


def test_a_lane_may_not_have_the_name_of_the_dead_letters_queue_on_rabbitmq(make_app: MakeApp) -> None:
    lanes = [Lane("dead_letters", slots=1)]
    with pytest.raises(ConfigurationError, match="lane 'dead_letters': on RabbitMQ"):
        Slackwater(make_app(broker_url="amqp://127.0.0.1:1//"), store=MemoryStore(), lanes=lanes)
    Slackwater(make_app(broker_url=REDIS), store=MemoryStore(), lanes=lanes)


def test_a_job_that_may_run_longer_than_rabbitmq_waits_is_refused_and_one_without_limit_is_noted(
    make_app: MakeApp,
) -> None:
    sw = around(make_app(broker_url="amqp://127.0.0.1:1//"))
    make: Any = sw.app.task
    for name, lane, limit in (("short", "till", 60), ("long", "till", 3600), ("endless", "bakery", None)):
        make(name=name, lane=lane, time_limit=limit, shared=False)(noop)

    sw.check_broker(["bakery"])
    with pytest.raises(ConfigurationError) as refused:
        sw.check_broker(["till", "bakery"])

    [line] = refused.value.findings
    assert line.startswith("lane 'till': task long may run for 1:00:00 (its time limit), and RabbitMQ takes a message")
    assert "lower the limit, or raise consumer_timeout" in line
    assert [note for note in sw.notes() if note.startswith("no time limit has endless: RabbitMQ delivers")]


def test_valkey_asks_for_no_time_limit(make_app: MakeApp) -> None:
    sw = around(make_app(broker_url=REDIS))
    add: Any = sw.app.task(name="long", lane="till", time_limit=100_000, shared=False)
    add(noop)
    sw.check_broker(["till"])
    assert sw.notes() == []


def noop() -> None:
    """Do nothing."""


def test_a_lanes_tasks_go_to_its_queue_and_others_where_the_application_sends_them(make_app: MakeApp) -> None:
    app = make_app(task_queues=[Queue("old")], task_routes={"by_rule": {"queue": "old"}})
    around(app, prefix="blue_")
    add: Any = app.task
    for name, options in {"in_lane": {"lane": "till"}, "by_rule": {}, "plain": {}}.items():
        add(name=name, shared=False, **options)(body)

    def routed(name: str, task: Any = None) -> str:
        router: Any = app.amqp.router
        return str(router.route({}, name, task_type=task)["queue"].name)

    assert routed("in_lane", app.tasks["in_lane"]) == routed("in_lane") == "blue_till"
    assert routed("by_rule") == "old"
    assert routed("plain") == app.conf.task_default_queue
    assert [queue.name for queue in app.conf.task_queues] == ["old", "blue_till", "blue_bakery"]


def body() -> None:
    """Do nothing."""

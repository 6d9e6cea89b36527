"""Recovery on Valkey: two worker processes as kombu sees them, one of which dies with messages in its hands."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import kombu
import pytest
import redis
from celery import Celery
from tests.contract.brokers.conftest import make_app
from tests.contract.brokers.links import PrivateValkey

from slackwater.adapters.brokers.recovery import open_recovery
from slackwater.adapters.brokers.unacked import REGISTRY, entry_of, keys_of, owner_in, transport_options_of
from slackwater.core.liveness import Owner
from slackwater.ports import Recovery

REALM = "books"


@pytest.fixture(params=["", "night:"], ids=["plain", "global_keyprefix"])
def keyprefix(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def app(valkey: PrivateValkey, keyprefix: str) -> Iterator[Celery]:
    with redis.Redis.from_url(valkey.url) as client:
        client.flushall()
    app = make_app(valkey.url, **({"global_keyprefix": keyprefix} if keyprefix else {}))
    yield app
    app.close()


@pytest.fixture
def recovery(app: Celery) -> Iterator[Recovery]:
    opened = open_recovery(app, realm=REALM)
    yield opened
    opened.close()


@pytest.fixture
def owner(recovery: Recovery) -> Owner:
    owner = Owner(worker="till@one", boot=uuid4())
    recovery.enter(owner)
    return owner


@contextmanager
def holding(app: Celery, owner: Owner, *, count: int, queue: str = "till") -> Iterator[list[Any]]:
    """Take messages as a worker does, and let nobody acknowledge them; the connection is cut at the end."""
    options = {**(app.conf.broker_transport_options or {}), **transport_options_of(owner)}
    connection = kombu.Connection(app.conf.broker_url, transport_options=options)
    channel: Any = connection.channel()
    channel.qos.restore_at_shutdown = False
    bound: Any = kombu.Queue(queue, kombu.Exchange(queue, type="direct"), routing_key=queue, channel=channel)
    bound.declare()
    yield [bound.get(no_ack=False) for _ in range(count)]
    connection.release()


def publish(app: Celery, *bodies: Any, queue: str = "till", priority: int | None = None) -> None:
    for body in bodies:
        app.send_task("noop", (body,), queue=queue, priority=priority)


def waiting(app: Celery, *, queue: str = "till") -> list[tuple[Any, bool]]:
    """Take everything that waits, in order: its argument, and whether it is flagged."""
    found = []
    with app.connection_for_read() as connection:
        channel: Any = connection.channel()
        while (message := channel.basic_get(queue, no_ack=True)) is not None:
            flagged = bool(message.delivery_info.get("redelivered") and message.headers.get("redelivered"))
            found.append((json.loads(message.body)[0][0], flagged))
    return found


def test_what_a_dead_owner_held_goes_back_in_order_and_flagged(app: Celery, recovery: Recovery, owner: Owner) -> None:
    publish(app, 0, 1, 2, 3)
    with holding(app, owner, count=3):
        assert recovery.owners() == {owner: 3}

    assert recovery.restore(owner) == 3

    assert waiting(app) == [(0, True), (1, True), (2, True), (3, False)]
    assert recovery.owners() == {owner: 0}
    assert recovery.restore(owner) == 0


def test_each_message_goes_back_to_its_own_queue_and_priority(app: Celery, recovery: Recovery, owner: Owner) -> None:
    publish(app, "low", priority=9)
    publish(app, "high", priority=0)
    publish(app, "other", queue="kiosk")
    with holding(app, owner, count=2), holding(app, owner, count=1, queue="kiosk"):
        pass

    assert recovery.restore(owner) == 3

    assert waiting(app) == [("high", True), ("low", True)]
    assert waiting(app, queue="kiosk") == [("other", True)]


def test_several_recoverers_at_once_put_each_message_back_once(app: Celery, owner: Owner) -> None:
    publish(app, *range(150))
    with holding(app, owner, count=150):
        pass
    several = [open_recovery(app, realm=REALM) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        restored = list(pool.map(lambda one: one.restore(owner), several))
    for one in several:
        one.close()

    assert sum(restored) == 150
    assert sorted(body for body, _ in waiting(app)) == list(range(150))


def test_an_owner_that_lives_after_all_deletes_nothing_of_the_next_holder(
    app: Celery, recovery: Recovery, owner: Owner
) -> None:
    publish(app, "work")
    following = Owner(worker="till@two", boot=uuid4())
    recovery.enter(following)
    with holding(app, owner, count=1) as [stale]:
        recovery.restore(owner)
        with holding(app, following, count=1):
            stale.ack()
            assert recovery.owners() == {owner: 0, following: 1}

    assert recovery.restore(following) == 1
    assert waiting(app) == [("work", True)]


def test_a_message_that_is_acknowledged_meanwhile_does_not_come_back(
    app: Celery, recovery: Recovery, owner: Owner
) -> None:
    publish(app, "done", "open")
    with holding(app, owner, count=2) as [done, _]:
        done.ack()
        assert recovery.restore(owner) == 1
    assert waiting(app) == [("open", True)]


def test_an_owner_with_messages_is_not_forgotten_and_an_empty_one_leaves_nothing(
    app: Celery, recovery: Recovery, owner: Owner, valkey: PrivateValkey, keyprefix: str
) -> None:
    publish(app, "work")
    with holding(app, owner, count=1):
        pass
    assert not recovery.forget(owner)
    recovery.restore(owner)

    assert recovery.forget(owner)

    assert recovery.owners() == {}
    keys = keys_of(owner)
    with redis.Redis.from_url(valkey.url) as client:
        names = (keys.messages, keys.index, keys.mutex, REGISTRY)
        assert client.exists(*(keyprefix + name for name in names)) == 0


def test_connections_are_seen_while_they_are_open(app: Celery, recovery: Recovery, owner: Owner) -> None:
    assert recovery.connections(owner) == 0
    with holding(app, owner, count=0):
        assert recovery.connections(owner)
        assert recovery.connections(Owner(worker=owner.worker, boot=uuid4())) == 0
    assert recovery.connections(owner) == 0


def test_where_the_list_of_clients_is_not_allowed_connections_are_unknown(valkey: PrivateValkey, owner: Owner) -> None:
    with redis.Redis.from_url(valkey.url) as client:
        client.execute_command("ACL", "SETUSER", "narrow", "on", ">word", "~*", "&*", "+@all", "-client|list")
    app = make_app(valkey.url.replace("redis://", "redis://narrow:word@"))
    recovery = open_recovery(app, realm=REALM)

    assert recovery.connections(owner) is None

    recovery.close()
    app.close()


def test_owners_of_another_realm_are_not_seen(app: Celery, recovery: Recovery, owner: Owner) -> None:
    other = open_recovery(app, realm="another")

    assert owner not in other.owners()
    assert owner in recovery.owners()

    other.close()


def test_what_is_no_entry_of_ours_is_passed_over(
    recovery: Recovery, owner: Owner, valkey: PrivateValkey, keyprefix: str
) -> None:
    with redis.Redis.from_url(valkey.url) as client:
        client.sadd(keyprefix + REGISTRY, "nonsense", "[1]", b"\xff", '["books", "w", "no uuid"]')

    assert recovery.owners() == {owner: 0}


def test_an_entry_is_read_as_it_was_written(owner: Owner) -> None:
    assert owner_in(entry_of(owner, realm=REALM)) == (REALM, owner)


def test_an_owner_sees_its_own_hands_and_puts_back_what_it_names(app: Celery, owner: Owner) -> None:
    hands = open_recovery(app, realm=REALM)
    publish(app, 1, 2, 3)
    with holding(app, owner, count=3) as messages:
        tags = [str(message.delivery_tag) for message in messages]
        assert sorted(hands.delivered(owner)) == sorted(tags)
        jobs = hands.jobs_of(owner, [*tags, "gone"])
        assert jobs == {tag: (message.headers["id"], 0) for tag, message in zip(tags, messages, strict=True)}
        assert hands.restore_these(owner, [tags[1], "gone"]) == 1
        assert hands.restore_these(owner, [tags[1]]) == 0
        assert hands.restore_these(owner, []) == 0
        assert sorted(hands.delivered(owner)) == sorted([tags[0], tags[2]])
    assert waiting(app) == [(2, True)]
    hands.close()


def test_what_is_none_of_kombus_in_ones_hands_is_left_alone(app: Celery, owner: Owner, keyprefix: str) -> None:
    hands = open_recovery(app, realm=REALM)
    with redis.Redis.from_url(app.conf.broker_url) as client:
        client.hset(keyprefix + keys_of(owner).messages, "odd", "no JSON")
    assert hands.delivered(owner) == ["odd"]
    assert hands.jobs_of(owner, ["odd"]) == {}
    assert hands.restore_these(owner, ["odd"]) == 0
    hands.close()

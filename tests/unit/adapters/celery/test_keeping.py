"""A worker keeps the messages of what it runs under a lease, once that has run for a moment."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4
from weakref import WeakSet

import pytest
from celery.utils.imports import symbol_by_name
from celery.worker import state, strategy
from kombu.message import Message as Delivered
from tests.unit.adapters.celery.conftest import NOON, Application

from slackwater.adapters.celery import keeping
from slackwater.adapters.celery.keeping import Keeper
from slackwater.adapters.celery.verbatim import body_of
from slackwater.adapters.memory import MemoryStore
from slackwater.core.admission import Admit, Ask, KeyRule, LeaseRule
from slackwater.core.job import HEADER, JobState, Mark
from slackwater.core.under_way import Offer, Start
from slackwater.errors import StoreUnavailable
from slackwater.ports import Finish

Make = Callable[..., Application]
BOOT = UUID(int=1)


@dataclass
class Bench:
    """A worker's main process, as far as its keeper looks at it; no body runs."""

    application: Application
    store: MemoryStore
    asked: list[list[str]] = field(default_factory=list)
    away: bool = False
    keeper: Keeper = field(init=False)

    def __post_init__(self) -> None:
        keep, sw = self.store.runs.keep, self.application.sw

        def noted(boot: UUID, offers: Sequence[Offer]) -> frozenset[Start]:
            if self.away:
                raise StoreUnavailable("store is away", where="here")
            self.asked.append(sorted(one.job for one in offers))
            return keep(boot, offers)

        self.store.runs.keep = noted  # type: ignore[method-assign]
        self.keeper = Keeper(
            boot=BOOT,
            lanes=sw.lanes,
            lane_of=sw.lane_of,
            store=lambda: self.store,
            clock=sw.clock,
            lease_lives_for=timedelta(seconds=15),
        )
        app: Any = sw.app
        options = {"lane": "till", "shared": False}
        app.task(name="keyed", key="effect:{effect}", lease="account:{effect}", **options)(self.body)
        app.task(name="plain", **options)(self.body)

    @staticmethod
    def body(effect: Any) -> None:
        """Stand for a body."""

    def accept(self, job: str, *args: Any, task: str = "keyed", **headers: Any) -> Any:
        """Do what a worker does with a message that its pool takes; return Celery's request."""
        app: Any = self.application.sw.app
        sent = app.amqp.as_task_v2(job, task, args or (7,), {})
        message = Delivered(
            body=json.dumps(sent.body),
            headers={**sent.headers, **headers},
            properties={**sent.properties, "delivery_tag": "1"},
            content_type="application/json",
            content_encoding="utf-8",
            delivery_info={"routing_key": "q-till"},
            accept={"application/json"},
        )
        return self.take(symbol_by_name(app.tasks[task].Request)(message, app=app, hostname="here"))

    def take(self, request: Any) -> Any:
        state.active_requests.add(request)
        return request

    def begin(self, job: str, effect: Any = 7, *, boot: UUID = BOOT, redelivered: bool = False) -> None:
        """Do what the job's guard does, wherever in the pool it is."""
        ask = Ask(
            job=job,
            tries=0,
            task="keyed",
            boot=boot,
            redelivered=redelivered,
            key=KeyRule(name=f"effect:{effect}"),
            lease=LeaseRule(name=f"account:{effect}", lives_for=timedelta(seconds=15)),
        )
        (begun,) = self.store.runs.begin([ask])
        assert isinstance(begun.admission, Admit)

    def look(self, times: int = 2) -> None:
        for _ in range(times):
            self.keeper.look()

    def kept(self, job: str) -> Any:
        return self.store.runs.under_way([job]).get(job)


@pytest.fixture
def bench(make_application: Make, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(state, "active_requests", WeakSet())
    store = MemoryStore()
    return Bench(make_application(store), store)


def test_one_that_runs_for_more_than_a_moment_is_kept_whole_and_once(bench: Bench) -> None:
    running = bench.accept("a", 7, eta=NOON.isoformat())
    bench.begin("a")
    bench.look(1)
    assert bench.asked == []
    bench.look(4)
    assert bench.asked == [["a"]]

    kept = bench.kept("a")
    assert (kept.start, kept.task, kept.lane) == (Start("a", 0, 1), "keyed", "till")
    assert (kept.lease, kept.key) == ("account:7", "effect:7")
    assert (kept.message.queue, kept.message.body) == ("q-till", running.body.encode())
    assert (kept.message.headers["id"], kept.message.headers["eta"]) == ("a", None)


def test_one_that_is_over_before_the_second_look_costs_nothing(bench: Bench) -> None:
    state.active_requests.discard(bench.accept("a"))
    bench.look()
    for job in "bcd":
        running = bench.accept(job)
        bench.look(1)
        state.active_requests.discard(running)
    bench.look()
    assert bench.asked == []


def test_one_without_a_lease_and_one_that_its_task_does_not_take_are_not_offered(bench: Bench) -> None:
    running = [bench.accept("a", task="plain"), bench.accept("b", 7, 8, 9)]
    bench.look(3)
    assert (len(running), bench.asked) == (2, [])


def test_a_key_of_its_own_mark_counts_as_its_tasks_would(bench: Bench) -> None:
    mark = Mark(published_at=NOON, lane="till", key="run:1")
    running = bench.accept("a", task="plain", **{HEADER: mark.to_header()})
    lease = LeaseRule(name="key:run:1", lives_for=timedelta(seconds=15))
    bench.store.runs.begin([Ask(job="a", tries=0, task="plain", boot=BOOT, redelivered=False, lease=lease)])
    bench.look()
    kept = bench.kept("a")
    assert (running.id, kept.lease, kept.key) == ("a", "key:run:1", "run:1")


def test_all_are_offered_together_and_again_while_the_store_does_not_know_them(bench: Bench) -> None:
    running = [bench.accept(job, number) for number, job in enumerate("abc")]
    bench.begin("a", 0)
    bench.begin("b", 1)
    bench.look(3)
    bench.begin("c", 2)
    bench.look()
    assert (len(running), bench.asked) == (3, [["a", "b", "c"], ["c"], ["c"]])


def test_nothing_is_lost_while_the_store_is_away(bench: Bench) -> None:
    running = bench.accept("a")
    bench.begin("a")
    bench.look(1)
    bench.away = True
    with pytest.raises(StoreUnavailable):
        bench.look()
    bench.away = False
    bench.look(1)
    assert bench.kept(running.id).start == Start("a", 0, 1)


def test_one_that_ends_while_it_is_offered_stays_ended(bench: Bench) -> None:
    running = bench.accept("a")
    bench.begin("a")
    bench.store.runs.finish([Finish(job="a", tries=0, state=JobState.DONE, ended_at=NOON, lease="account:7", fence=1)])
    bench.look(3)
    assert (running.id, bench.kept("a")) == ("a", None)
    assert bench.store.runs.runs(["a"])["a"].state is JobState.DONE


def test_the_next_delivery_of_a_job_is_kept_anew(bench: Bench) -> None:
    first = bench.accept("a")
    bench.begin("a")
    bench.look()
    state.active_requests.discard(first)
    bench.store.runs.lapse(BOOT, ["a"])
    again = bench.accept("a")
    bench.begin("a", redelivered=True)
    assert bench.kept("a") is None
    bench.look()
    assert bench.kept(again.id).start == Start("a", 0, 2)


def test_what_another_worker_has_by_now_is_left_to_that_one(bench: Bench) -> None:
    zombie = bench.accept("a")
    bench.begin("a")
    bench.store.runs.lapse(BOOT, ["a"])
    bench.begin("a", boot=UUID(int=2), redelivered=True)
    bench.look(3)
    assert bench.kept(zombie.id) is None


def test_a_statement_carries_so_much_and_a_message_that_is_larger_is_left_away(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = [bench.accept(job, effect) for job, effect in (("a", "x"), ("b", "y"), ("c", "z"), ("d", "z" * 200))]
    monkeypatch.setattr(keeping, "MOST_BYTES", 2 * len(running[0].body) + 1)
    for job, effect in (("a", "x"), ("b", "y"), ("c", "z"), ("d", "z" * 200)):
        bench.begin(job, effect)
    bench.look()
    assert [len(each) for each in bench.asked] in ([2, 2], [3, 1])
    assert [bench.kept(job).message is not None for job in "abcd"] == [True, True, True, False]


def test_a_message_of_celerys_first_protocol_is_kept_with_what_is_linked_to_it(bench: Bench) -> None:
    app: Any = bench.application.sw.app
    celerys: Any = strategy  # the stubs leave out what it is made of
    link = app.tasks["plain"].si(8)
    sent = app.amqp.as_task_v1(str(uuid4()), "keyed", (7,), {}, callbacks=[link])
    message = Delivered(body=json.dumps(sent.body), content_type="application/json", accept={"application/json"})
    body, headers, decoded, utc = celerys.hybrid_to_proto2(message, json.loads(json.dumps(sent.body)))
    stock = symbol_by_name(app.tasks["keyed"].Request)
    running = bench.take(stock(message, app=app, body=body, headers=headers, decoded=decoded, utc=utc))
    bench.begin(running.id)
    bench.look()
    args, kwargs, embed = body_of(bench.kept(running.id).message, accept=["json"])
    assert (args, kwargs, [one["task"] for one in embed["callbacks"]]) == ([7], {}, ["plain"])

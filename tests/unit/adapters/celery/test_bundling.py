"""What is noted of groups and chords as they are published, in this process and without a socket."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery, chain, chord, group
from tests.unit.adapters.celery.conftest import NOON, Application

from slackwater import Lane, Settings, Slackwater, hours
from slackwater.adapters.celery import bundling
from slackwater.adapters.celery.publishing import Sending
from slackwater.adapters.memory import MemoryStore
from slackwater.core.bundle import Bundle
from slackwater.core.job import HEADER, Mark
from slackwater.errors import StoreUnavailable

MakeApp = Callable[..., Celery]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def application(make_app: MakeApp, store: Any, *, watch: bool = True) -> Any:
    app: Any = make_app()
    # What a chord needs of a backend, without one that counts.
    app.backend.set_chord_size = lambda *_, **__: None
    app.backend.apply_chord = lambda members, *_, **__: app.GroupResult(*members)
    Slackwater(app, store=store, lanes=[Lane("till", slots=1)], settings=Settings(watch_bundles=watch))
    tasks: dict[str, Any] = {"serve": {"lane": "till"}, "report": {"lane": "till"}, "elsewhere": {}}
    for name, options in (tasks | {"hasty": {"lane": "till", "acks_late": False}}).items():
        app.task(name=name, shared=False, **options)(body)
    return app


def body(*args: Any) -> None:
    """Do nothing."""


def noted(store: MemoryStore) -> Sequence[Bundle]:
    return store.bundles.find(store.bundles.open())


def shape(bundle: Bundle) -> tuple[list[list[str]], list[str] | None]:
    """Return the tasks of a bundle's members, and of its body."""
    members = [[link.task for link in one.links] for one in bundle.members]
    return members, None if bundle.body is None else [link.task for link in bundle.body.links]


def test_a_group_is_noted_with_its_members(make_app: MakeApp, store: MemoryStore) -> None:
    serve = application(make_app, store).tasks["serve"]
    result: Any = group(serve.si(1), serve.si(2)).apply_async()
    [one] = noted(store)
    assert one.id == result.id
    assert [each.job for each in one.members] == [each.id for each in result.children]
    assert shape(one) == ([["serve"], ["serve"]], None)
    assert all(each.placed for each in one.members)


def test_a_chord_is_noted_with_its_body_and_with_when_its_count_is_gone(make_app: MakeApp, store: MemoryStore) -> None:
    app = application(make_app, store)
    app.conf.result_chord_expires = 3600
    serve, report = app.tasks["serve"], app.tasks["report"]
    result: Any = chord([serve.si(1), chain(serve.si(2), serve.si(3))], report.si()).apply_async()
    [one] = noted(store)
    assert shape(one) == ([["serve"], ["serve", "serve"]], ["report"])
    assert one.body is not None
    assert (one.body.job, one.kept_until) == (result.id, one.noted_at + hours(1))
    assert one.callback is not None
    assert '"report"' in one.callback


def test_a_chord_in_a_chord_is_noted_by_itself_and_its_body_is_the_other_ones_member(
    make_app: MakeApp, store: MemoryStore
) -> None:
    app = application(make_app, store)
    serve, report = app.tasks["serve"], app.tasks["report"]
    chord([chord([serve.si(1)], report.si(1)), serve.si(2)], report.si(2)).apply_async()
    inner, outer = noted(store)
    assert (shape(inner), shape(outer)) == (([["serve"]], ["report"]), ([["report"], ["serve"]], ["report"]))
    assert inner.body is not None
    assert inner.body.job == outer.members[0].job


def test_a_chord_in_a_chain_in_a_chord_is_followed_through_its_body(make_app: MakeApp, store: MemoryStore) -> None:
    app = application(make_app, store)
    serve, report = app.tasks["serve"], app.tasks["report"]
    inner = chord([serve.si(2)], report.si(1))
    chord([chain(serve.si(1), inner, serve.si(3)), serve.si(4)], report.si(2)).apply_async()
    [one] = noted(store)
    assert shape(one) == ([["serve", "report", "serve"], ["serve"]], ["report"])
    assert all(each.placed for each in one.members)


def test_what_goes_to_no_lane_or_is_acknowledged_early_is_not_placed(make_app: MakeApp, store: MemoryStore) -> None:
    app = application(make_app, store)
    serve, elsewhere, hasty = app.tasks["serve"], app.tasks["elsewhere"], app.tasks["hasty"]
    away = serve.si(6).set(queue="away")
    group(
        serve.si(1), elsewhere.si(2), hasty.si(3), chain(serve.si(4), elsewhere.si(5)), away, chain(serve.si(7), away)
    ).apply_async()
    [one] = noted(store)
    assert [each.placed for each in one.members] == [True, *[False] * 5]


def test_a_body_that_is_a_group_is_all_its_jobs_and_one_that_is_a_chain_is_not_placed(
    make_app: MakeApp, store: MemoryStore
) -> None:
    app = application(make_app, store)
    serve = app.tasks["serve"]
    chord([serve.si(1)], group(serve.si(2), serve.si(3))).apply_async()
    chord([serve.si(1)], chain(serve.si(2), serve.si(3))).apply_async()
    grouped, chained = (one.body for one in noted(store))
    assert grouped is not None
    assert chained is not None
    assert (len(grouped.links), grouped.placed, chained.placed) == (2, True, False)


def test_its_window_is_the_widest_of_its_members_and_none_where_one_has_none(
    make_app: MakeApp, store: MemoryStore
) -> None:
    serve = application(make_app, store).tasks["serve"]

    def by(number: int) -> Any:
        mark = Mark(published_at=NOON, start_by=NOON.replace(year=2100) + hours(number))
        return serve.si(number).set(headers={HEADER: mark.to_header()})

    group(by(1), by(2)).apply_async()
    group(by(1), serve.si(2)).apply_async()
    assert {one.start_by for one in noted(store)} == {NOON.replace(year=2100) + hours(2), None}


def test_nothing_is_noted_of_plain_jobs_and_chains_or_where_nobody_wants_it(
    make_app: MakeApp, store: MemoryStore
) -> None:
    serve = application(make_app, store).tasks["serve"]
    serve.delay(1)
    chain(serve.si(1), serve.si(2)).apply_async()
    unwatched = application(make_app, store, watch=False).tasks["serve"]
    group(unwatched.si(1), unwatched.si(2)).apply_async()
    assert noted(store) == []


@pytest.mark.parametrize("trouble", [StoreUnavailable("the store is away", where="here"), LookupError("no table")])
def test_no_trouble_with_the_store_keeps_a_group_from_being_published(make_app: MakeApp, trouble: Exception) -> None:
    class Away:
        def __getattr__(self, name: str) -> Any:
            raise trouble

    serve = application(make_app, Away()).tasks["serve"]
    result: Any = group(serve.si(1), serve.si(2)).apply_async()
    assert len(result.children) == 2


def followed(app: Any, store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Sequence[Bundle]]]:
    """Note what is noted at the moment at which each message goes out; return that, by task."""
    found: list[tuple[str, Sequence[Bundle]]] = []
    send = Sending.hand_over

    def hand_over(sending: Any, producer: Any) -> None:
        found.append((sending.name, noted(store)))
        send(sending, producer)

    monkeypatch.setattr(Sending, "hand_over", hand_over)
    return found


def test_a_chord_is_noted_before_its_first_job_goes_out(
    make_app: MakeApp, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = application(make_app, store)
    serve, report = app.tasks["serve"], app.tasks["report"]
    found = followed(app, store, monkeypatch)
    members = [serve.si(1), chain(serve.si(2), report.si(3)), serve.si(4)]
    result: Any = chord(members, report.si()).apply_async()
    assert [task for task, _ in found] == ["serve"] * 3
    [whole] = noted(store)
    for _, [begun] in found:
        assert (begun.whole, begun.publisher, begun.id) == (False, None, whole.id)
        assert list(begun.jobs) == list(whole.jobs)
        assert all(each.placed for each in begun.members)
        assert (begun.body, begun.callback) == (whole.body, whole.callback)
    assert (whole.whole, whole.id) == (True, result.parent.id)
    # Of the first one alone it is known then what it is.
    assert [link.task for each in found[0][1][0].members for link in each.links] == ["serve", "", "", ""]


def test_a_chord_of_which_the_first_goes_to_no_lane_is_placed_nowhere_while_it_is_published(
    make_app: MakeApp, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = application(make_app, store)
    found = followed(app, store, monkeypatch)
    chord([app.tasks["elsewhere"].si(1), app.tasks["serve"].si(2)], app.tasks["report"].si()).apply_async()
    assert [each.placed for each in found[0][1][0].members] == [False, False]
    assert [each.placed for each in noted(store)[0].members] == [False, True]


def test_chords_inside_each_other_are_noted_before_the_first_job_of_all(
    make_app: MakeApp, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = application(make_app, store)
    serve, report = app.tasks["serve"], app.tasks["report"]
    found = followed(app, store, monkeypatch)
    chord([chord([serve.si(1), serve.si(2)], report.si(1)), serve.si(3)], report.si(2)).apply_async()
    assert [sorted(len(one.members) for one in bundles if not one.whole) for _, bundles in found] == [
        [2, 2],
        [2, 2],
        [2],
    ]
    assert {one.id for one in found[0][1]} == {one.id for one in noted(store)}


def test_a_chord_that_takes_long_to_publish_is_noted_as_going_on(
    make_app: MakeApp, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = application(make_app, store)
    serve = app.tasks["serve"]
    monkeypatch.setattr(bundling, "NOTED_EVERY", timedelta(0))
    found = followed(app, store, monkeypatch)
    chord([serve.si(number) for number in range(3)], app.tasks["report"].si()).apply_async()
    first, _, last = (bundles[0] for _, bundles in found)
    assert first.noted_at < last.noted_at
    assert [[link.task for link in one.links] for one in last.members] == [["serve"]] * 3


def test_of_a_chord_that_a_body_publishes_the_job_is_known_that_may_do_it_again(
    make_application: Callable[..., Application], store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = make_application(store)
    app: Any = application.sw.app
    app.backend.apply_chord = lambda args, *_, **__: app.GroupResult(*args)
    app.backend.set_chord_size = lambda *_: None
    found = followed(app, store, monkeypatch)
    serve = application.add("serve", body)

    def publish(_task: Any) -> None:
        chord([serve.si(1)], serve.si(2)).apply_async()

    job = application.deliver(application.add("publish", publish))
    assert [one.publisher for one in found[0][1]] == [job]
    assert [one.publisher for one in noted(store)] == [None]


def test_a_group_that_somebody_else_will_publish_is_not_noted(make_app: MakeApp, store: MemoryStore) -> None:
    serve = application(make_app, store).tasks["serve"]
    chain(serve.si(1), group(serve.si(2), serve.si(3))).apply_async()
    assert noted(store) == []


def test_a_worker_remembers_nothing_from_one_job_to_the_next(make_application: Callable[..., Application]) -> None:
    application = make_application()
    bundler = application.sw._delivering.seam.bundler
    link = {"task": "serve", "options": {"task_id": "b", "group_id": "g", "chord": {"task": "report", "options": {}}}}
    kept: list[int] = []

    def body(_task: Any) -> None:
        # As Celery's tracer publishes the next link of a chain whose last is a group's.
        bundler.sent({"id": "a", "task": "serve"}, {"chain": [link]}, {}, None)
        kept.append(len(bundler._memory().sent))

    application.deliver(application.add("serve", body))
    assert kept == [2]
    assert not bundler._memory().sent
    assert not bundler._memory().callbacks

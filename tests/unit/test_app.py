"""Slackwater around an application."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from celery import Celery
from kombu import Queue

from slackwater import Entry, Lane, Schedule, Settings, Slackwater, every, hours
from slackwater.adapters.memory import MemoryStore
from slackwater.errors import ConfigurationError

MakeApp = Callable[..., Celery]


def body(*_args: object) -> None:
    """Do nothing."""


def add(app: Celery, name: str, **options: Any) -> None:
    make: Any = app.task(name=name, shared=False, **options)
    make(body)


def around(app: Celery, *entries: str, **options: Any) -> Slackwater:
    schedule = Schedule(entries={name: Entry(every(hours(1)), expires=hours(1)) for name in entries})
    return Slackwater(
        app, **{"store": MemoryStore(), "lanes": [Lane("till", slots=1)], "schedule": schedule, **options}
    )


def findings(sw: Slackwater) -> tuple[str, ...]:
    with pytest.raises(ConfigurationError) as refused:
        sw.check()
    return refused.value.findings


def test_a_task_in_an_unknown_lane_is_told_the_nearest(make_app: MakeApp) -> None:
    sw = around(make_app())
    add(sw.app, "serve", lane="tlil")
    assert findings(sw) == ("task serve: no lane is named 'tlil'; did you mean 'till'?",)


def test_an_entry_without_a_task_is_told_the_nearest_or_what_to_do(make_app: MakeApp) -> None:
    sw = around(make_app(), "bakee", "xyzzy")
    add(sw.app, "bake", lane="till")
    assert findings(sw) == (
        "entry 'bakee': no task is registered as 'bakee'; did you mean 'bake'?",
        "entry 'xyzzy': no task is registered as 'xyzzy'; import its module, or name it with Entry(task=...)",
    )


def test_a_sound_application_passes(make_app: MakeApp) -> None:
    sw = around(make_app(), "bake")
    add(sw.app, "bake", lane="till")
    add(sw.app, "without_lane")
    sw.check()
    assert (sw.lane_of("bake"), sw.lane_of("without_lane"), sw.lane_of("nothing")) == ("till", None, None)


def test_a_task_that_opts_out_of_late_acknowledgement_is_reported_and_not_changed(make_app: MakeApp) -> None:
    sw = around(make_app())
    add(sw.app, "careless", lane="till", acks_late=False, time_limit=60)
    add(sw.app, "careful", lane="till", time_limit=60)
    assert sw.notes() == ["task careless: acks_late=False; it is lost when its worker dies"]
    assert sw.app.tasks["careless"].acks_late is False


def test_tasks_without_a_lane_are_named_the_first_five_of_them(make_app: MakeApp) -> None:
    sw = around(make_app())
    for name in "abcdefg":
        add(sw.app, name)
    [note] = sw.notes()
    assert note == (
        "tasks a, b, c, d, e and 2 more have no lane: they go to queue celery, which no lane's worker reads; "
        "give each lane=..."
    )


def test_tasks_without_a_lane_are_told_by_the_queue_that_they_go_to(make_app: MakeApp) -> None:
    sw = around(make_app(task_routes={"routed": {"queue": "till"}}))
    add(sw.app, "elsewhere", queue="old")
    add(sw.app, "routed")
    assert sw.notes() == [
        "task elsewhere has no lane: it goes to queue old, which no lane's worker reads; give each lane=...",
        "task routed has no lane: it goes to the queue of lane till, uncounted; give each lane='till'",
    ]


@pytest.mark.parametrize(
    "routes",
    [
        {"serve": {"queue": "celery"}},
        {"serve": "celery"},
        {"se*": {"queue": Queue("celery")}},
        ([("serve", {"queue": "celery"})],),
        ({"other": "till"}, {"serve": {"routing_key": "celery"}}),
        lambda name, *_args, **_kwargs: "celery" if name == "serve" else None,
    ],
)
def test_a_route_that_leads_past_its_tasks_lane_is_refused(make_app: MakeApp, routes: Any) -> None:
    sw = around(make_app(task_routes=routes))
    add(sw.app, "serve", lane="till")
    assert findings(sw) == (
        "task serve: setting task_routes sends it to 'celery', and its lane 'till' to 'till'; "
        "drop the route, or the lane",
    )


def test_a_task_that_asks_for_another_queue_than_its_lanes_is_refused(make_app: MakeApp) -> None:
    sw = around(make_app())
    add(sw.app, "serve", lane="till", queue="celery")
    assert findings(sw) == (
        "task serve: its option queue= sends it to 'celery', and its lane 'till' to 'till'; "
        "drop the route, or the lane",
    )


def test_routes_that_agree_with_the_lane_or_concern_no_lane_are_left_alone(make_app: MakeApp) -> None:
    def needs_arguments(_name: str, args: Any, *_: Any, **__: Any) -> str:
        return str(args[0])

    sw = around(make_app(task_routes=({"serve": {"queue": "till"}, "plain": {"queue": "old"}}, needs_arguments)))
    add(sw.app, "serve", lane="till")
    add(sw.app, "bake", lane="till")
    add(sw.app, "plain")
    sw.check()


def test_routes_that_are_replaced_afterwards_are_refused(make_app: MakeApp) -> None:
    sw = around(make_app())
    sw.app.conf.task_routes = {"plain": {"queue": "old"}}
    assert findings(sw) == (
        "setting task_routes was replaced after Slackwater(app, ...), so no task reaches its lane; set it before",
    )


def test_an_application_without_slackwater_is_told_what_to_add(make_app: MakeApp) -> None:
    with pytest.raises(ConfigurationError, match="has no Slackwater; add sw = Slackwater"):
        Slackwater.of(make_app())


def test_the_slackwater_of_an_application_is_found(make_app: MakeApp) -> None:
    sw = around(make_app())
    assert Slackwater.of(sw.app) is sw


def test_adopting_the_schedule_counts_new_entries_from_an_instant_and_leaves_known_ones(make_app: MakeApp) -> None:
    store, noon = MemoryStore(), datetime(2026, 3, 2, 12, tzinfo=UTC)
    assert around(make_app(), "bake", store=store).adopt_schedule(noon) == ("bake",)
    sw = around(make_app(), "bake", "brew", store=store)
    assert sw.adopt_schedule(noon + hours(1)) == ("brew",)
    assert store.occurrences.watermarks() == {"bake": noon, "brew": noon + hours(1)}
    assert sw.adopt_schedule() == ()


def test_no_store_is_an_error_when_it_is_needed_and_not_before(make_app: MakeApp) -> None:
    sw = around(make_app(), store=None, settings=Settings())
    with pytest.raises(ConfigurationError, match="set SLACKWATER_STORE_URL"):
        sw.store  # noqa: B018


def test_the_store_of_the_environment_goes_before_the_one_in_the_code(make_app: MakeApp) -> None:
    sw = around(make_app(), store="nonsense://", settings=Settings(store_url="memory://"))
    assert isinstance(sw.store, MemoryStore)


def test_a_fan_out_of_a_task_without_lane_is_refused(make_app: MakeApp) -> None:
    sw = around(make_app())
    add(sw.app, "stray")
    with pytest.raises(ConfigurationError, match=r"task stray has no lane.*give it lane=\.\.\."):
        sw.fan_out(sw.app.tasks["stray"], [(1,)])


def test_a_fan_out_of_a_task_without_results_is_refused(make_app: MakeApp) -> None:
    sw = around(make_app())
    add(sw.app, "deaf", lane="till", ignore_result=True)
    with pytest.raises(ConfigurationError, match="remove ignore_result=True"):
        sw.fan_out(sw.app.tasks["deaf"], [(1,)])

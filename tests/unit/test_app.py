"""Slackwater around an application."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from celery import Celery

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
    add(sw.app, "careless", lane="till", acks_late=False)
    add(sw.app, "careful", lane="till")
    assert sw.notes() == ["task careless: acks_late=False; it is lost when its worker dies"]
    assert sw.app.tasks["careless"].acks_late is False


def test_tasks_without_a_lane_are_named_the_first_five_of_them(make_app: MakeApp) -> None:
    sw = around(make_app())
    for name in "abcdefg":
        add(sw.app, name)
    [note] = sw.notes()
    assert note == (
        "no lane has a, b, c, d, e and 2 more: no lane's worker or reading knows of them; give each lane=..."
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


def test_a_fan_out_of_a_task_without_results_is_refused(make_app: MakeApp) -> None:
    sw = around(make_app())
    add(sw.app, "deaf", lane="till", ignore_result=True)
    with pytest.raises(ConfigurationError, match="remove ignore_result=True"):
        sw.fan_out(sw.app.tasks["deaf"], [(1,)])

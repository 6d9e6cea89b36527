"""Settings of nightshift's processes."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from nightshift.errors import NightError
from nightshift.settings import NightSettings, Plan


def test_settings_come_back_from_the_environment_that_they_make() -> None:
    settings = NightSettings(
        plan=Plan.COLLIDE,
        prefix="night_1_",
        world_url="http://127.0.0.1:9",
        credentials=Path("/eine Nacht/application.json"),
        folder=Path("/eine Nacht"),
        calls_per_second=3.5,
        sync_slots=5,
        readers=1,
        ends_at=datetime(2026, 11, 29, 7, tzinfo=UTC),
    )
    assert NightSettings.from_environment({**settings.environment(), "PATH": "/bin"}) == settings


def test_an_empty_environment_gives_the_defaults() -> None:
    assert NightSettings.from_environment({}) == NightSettings()


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(NightError, match=r"SYNC_SLOT is no setting; did you mean NIGHTSHIFT_SYNC_SLOTS\?"):
        NightSettings.from_environment({"NIGHTSHIFT_SYNC_SLOT": "3"})


@pytest.mark.parametrize(
    ("variable", "value"),
    [("NIGHTSHIFT_READERS", "two"), ("NIGHTSHIFT_PLAN", "colide"), ("NIGHTSHIFT_CALLS_PER_SECOND", "fast")],
)
def test_a_value_that_cannot_be_is_named_with_its_variable(variable: str, value: str) -> None:
    with pytest.raises(NightError, match=f"environment: {variable}='{value}': "):
        NightSettings.from_environment({variable: value})

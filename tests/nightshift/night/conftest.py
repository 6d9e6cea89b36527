"""Nights for tests: each in a folder of its own, and none that outlives its test."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.nightshift.night.running import RunningNight, start

StartNight = Callable[..., RunningNight]


@pytest.fixture
def start_night(tmp_path: Path) -> Iterator[StartNight]:
    """Start nights; by default in one folder, made by the first of them."""
    started: list[RunningNight] = []

    def begin(
        *options: str,
        folder: Path | None = None,
        variables: Mapping[str, str] | None = None,
        without: frozenset[str] = frozenset(),
    ) -> RunningNight:
        place, told = folder or tmp_path / "night", tmp_path / "told"
        night = start(place, *options, output=told, variables=variables or {}, without=without)
        started.append(night)
        return night

    yield begin
    for night in started:
        night.popen.kill()
        night.popen.wait()

"""Where the morning report goes."""

import json
from pathlib import Path

import pytest
from rich.console import Console
from tests.nightshift.report.conftest import made_night

from nightshift.errors import NightError
from nightshift.report.night import Night
from nightshift.report.publish import ensure_writable, publish


@pytest.fixture(scope="module")
def night() -> Night:
    return made_night(accounts=40, receipts=4, clicks=10)


def test_a_report_goes_where_it_is_asked_for_with_page_and_picture_beside_it(night: Night, tmp_path: Path) -> None:
    asked = tmp_path / "Bericht.json"
    ensure_writable(asked)
    assert list(tmp_path.iterdir()) == []
    with Console(record=True, width=200, quiet=True) as console:
        ok = publish(night, console=console, report=asked, folder=tmp_path / "night")
    assert json.loads(asked.read_text())["ok"] is ok
    assert {path.name for path in tmp_path.iterdir()} == {"Bericht.json", "Bericht.html", "Bericht.svg"}


def test_a_report_that_nobody_asked_for_goes_into_the_nights_folder(night: Night, tmp_path: Path) -> None:
    publish(night, console=Console(quiet=True), report=None, folder=tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".html", ".svg"}


def test_a_report_whose_folder_went_away_is_kept_in_the_nights_folder(night: Night, tmp_path: Path) -> None:
    asked = tmp_path / "gone" / "report.json"
    with pytest.raises(NightError) as told:
        publish(night, console=Console(quiet=True), report=asked, folder=tmp_path)
    assert str(asked) in str(told.value)
    assert str(told.value).endswith(f"(it is in {tmp_path / 'morning-report.json'} now)")
    assert "jobs" in json.loads((tmp_path / "morning-report.json").read_text())


def test_a_report_that_can_be_written_nowhere_names_both_places(night: Night, tmp_path: Path) -> None:
    with pytest.raises(NightError) as told:
        publish(night, console=Console(quiet=True), report=tmp_path / "a" / "x.json", folder=tmp_path / "b")
    assert all(str(tmp_path / folder) in str(told.value) for folder in "ab")


@pytest.mark.parametrize("name", ["night.html", "night.svg"])
def test_a_report_whose_place_the_page_or_picture_would_take_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(NightError, match=r"give a name that ends in \.json"):
        ensure_writable(tmp_path / name)


def test_a_folder_that_is_not_there_is_refused_before_the_night(tmp_path: Path) -> None:
    with pytest.raises(NightError, match="No such file or directory; give a file in a folder"):
        ensure_writable(tmp_path / "nowhere" / "night.json")

"""README's example is run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from slackwater import Lane, Slackwater

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def example() -> dict[str, object]:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {"__name__": "books"}
    exec(blocks[0], names)  # noqa: S102 - our own README
    return names


def test_the_first_example_makes_an_application_that_can_run(example: dict[str, object]) -> None:
    sw = example["sw"]
    assert isinstance(sw, Slackwater)
    sw.check()


def test_the_first_example_puts_both_tasks_into_its_lane(example: dict[str, object]) -> None:
    sw, lane = example["sw"], example["bank"]
    assert isinstance(sw, Slackwater)
    assert isinstance(lane, Lane)
    assert {sw.lane_of(task) for task in ("sync_all", "sync_account")} == {lane.name}
    assert set(sw.schedule.entries) == {"sync_all"}


def test_no_local_link_of_readme_leads_nowhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#][^)]*)\)", text) if not link.startswith("http")]
    assert links
    assert [link for link in links if not (ROOT / link.partition("#")[0]).exists()] == []

"""A quick world for the tests of one module, and an HTTP client that may call it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are not among our tools
from tests.nightshift.world.interface import DESCRIPTION

from nightshift.world.testing import TOKEN, RunningWorld, running_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorld]:
    with running_world(tmp_path_factory.mktemp("world") / "books.sqlite") as running:
        yield running


@pytest.fixture
def http(world: RunningWorld) -> Iterator[httpx2.Client]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx2.Client(base_url=world.url, headers=headers, timeout=20, trust_env=False) as client:
        yield client


@pytest.fixture
def books(tmp_path: Path) -> Path:
    return tmp_path / "books.sqlite"


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    if not DESCRIPTION.exists():
        pytest.skip("the vendor's interface description is not beside the repository")
    schemas: dict[str, Any] = yaml.safe_load(DESCRIPTION.read_text(encoding="utf-8"))["components"]["schemas"]
    return schemas

"""A night whose folder is on a disk that fills up: one clear line, exit code 2, no process left."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from tests.nightshift.night.running import RunningNight, start

from nightshift import journal

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a small disk"),
]
MOUNT = 'mount -t tmpfs -o "size=$1,mode=0755" none "$2" && shift 2 && exec "$@"'


@pytest.fixture
def disk() -> Iterator[Path]:
    """A folder for a small disk, which only the night itself sees.

    Beneath it is what all others see: a lock, or they would take the night for one that is gone and clean up after it.
    """
    place = Path("/var/tmp") / f"nightshift-disk-{uuid4().hex[:8]}"  # noqa: S108
    (place / "night").mkdir(parents=True)
    (place / "night" / "lock").touch()
    allowed = subprocess.run(small(place, "1m", "true"), capture_output=True, text=True, check=False)
    if allowed.returncode != 0:
        shutil.rmtree(place)
        pytest.skip(f"this machine lets nobody make a small disk: {allowed.stderr.strip()}")
    yield place
    shutil.rmtree(place)


def small(place: Path, size: str, *command: str) -> list[str]:
    """Return a line that runs a command where a folder is a small disk; nobody else sees that disk."""
    return ["unshare", "--mount", "sh", "-c", MOUNT, "sh", size, str(place), *command]


def begin(disk: Path, tmp_path: Path, size: str) -> RunningNight:
    night = start(disk / "night", output=tmp_path / "told", variables={}, launcher=small(disk, size))
    # Another process sees what the night sees through its root; the line above has replaced itself by the night.
    return replace(night, folder=Path(f"/proc/{night.popen.pid}/root{disk}/night"))


def fill(night: RunningNight) -> None:
    with (night.folder.parent / "filler").open("wb", buffering=0) as filler:
        piece = 1024 * 1024
        while piece:
            try:
                filler.write(b"\0" * piece)
            except OSError:
                piece //= 2


def assert_one_line_and_nothing_left(night: RunningNight, disk: Path) -> None:
    assert night.wait() == 2
    told = night.told()
    assert "no space left on the disk of" in told.lower() or "No space left on device" in told, told
    assert str(disk) in told
    assert night.left_running() == []
    assert not night.report.exists()


def test_a_disk_that_fills_up_in_the_middle_ends_a_night_in_one_line(disk: Path, tmp_path: Path) -> None:
    night = begin(disk, tmp_path, "256m")
    try:
        night.until(lambda: bool(night.events(journal.STARTED)))
        fill(night)
        assert_one_line_and_nothing_left(night, disk)
    finally:
        night.popen.kill()
        night.popen.wait()


@pytest.mark.parametrize("size", ["16k", "600k"])
def test_a_disk_that_is_too_small_ends_a_night_in_one_line(disk: Path, tmp_path: Path, size: str) -> None:
    night = begin(disk, tmp_path, size)
    try:
        assert_one_line_and_nothing_left(night, disk)
    finally:
        night.popen.kill()
        night.popen.wait()

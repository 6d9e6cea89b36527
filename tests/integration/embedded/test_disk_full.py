"""A disk that is full is told in one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from slackwater.adapters.embedded.postgres_files import copied_programs
from slackwater.adapters.embedded.server_user import shared_base

ON_A_SMALL_DISK = """
import sys
from pathlib import Path
from slackwater.adapters.embedded.postgres_files import initialise
from slackwater.errors import LocalServiceError
from slackwater.adapters.embedded.server_user import server_user
try:
    initialise(Path(sys.argv[1]) / "data", bin_folder=Path(sys.argv[2]), user=server_user())
except LocalServiceError as error:
    print(error)
    print(sorted(path.name for path in Path(sys.argv[1]).iterdir() if path.name == "data"))
"""
SMALL_DISK = 'mount -t tmpfs -o size=12m,mode=0755 none "$1" && exec "$2" -c "$3" "$1" "$4"'


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a small disk")
def test_a_new_postgresql_on_a_full_disk_is_told_in_one_line_and_leaves_no_half_of_it(tmp_path: Path) -> None:
    disk = Path("/var/tmp") / f"slackwater-disk-{os.getpid()}"  # noqa: S108
    disk.mkdir()
    try:
        line = ["unshare", "--mount", "sh", "-c", SMALL_DISK, "sh", str(disk), sys.executable, ON_A_SMALL_DISK]
        ended = subprocess.run(
            [*line, str(copied_programs(shared_base()))], capture_output=True, text=True, check=False
        )
    finally:
        disk.rmdir()
    if "unshare" in ended.stderr or "mount" in ended.stderr:
        pytest.skip(f"this machine lets nobody make a small disk: {ended.stderr.strip()}")
    assert ended.stdout.splitlines() == [
        f"no space left on the disk of {disk}: a new PostgreSQL takes about 70 MB; make room, or pass another folder",
        "[]",
    ], ended.stderr

"""Root's servers run as another user, from a folder that this user can reach, and nobody's modes are loosened."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import make_url

from slackwater.adapters.embedded.postgres_files import copied_programs
from slackwater.adapters.embedded.server_user import ServerUser, server_user, shared_base, shared_place
from slackwater.errors import LocalServiceError
from slackwater.local import Data, PostgreSQL, RunFolder, Supervisor

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root's servers run as another user")

AS_ANOTHER = "import os, sys, psycopg; os.setuid(int(sys.argv[2])); psycopg.connect(sys.argv[1])"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A folder whose parents let nobody else in."""
    return tmp_path / "base"


@pytest.fixture
def user() -> ServerUser:
    found = server_user()
    assert found is not None
    return found


def test_a_base_that_others_cannot_enter_is_passed_over(base: Path) -> None:
    with pytest.raises(LocalServiceError, match=r"none of .*base can be that; make one of them writable"):
        shared_base([base])


def test_a_base_is_made_for_others_to_enter_even_under_a_strict_umask() -> None:
    before = os.umask(0o077)
    try:
        base = shared_base([Path("/var/tmp") / f"slackwater-test-{os.getpid()}"])  # noqa: S108
    finally:
        os.umask(before)
    assert stat.S_IMODE(base.stat().st_mode) == 0o711
    base.rmdir()


def test_the_programs_are_copied_once_and_a_copy_that_was_cut_short_is_made_anew(base: Path) -> None:
    base.mkdir()
    (base / "postgresql-cut.partial").mkdir()
    first = copied_programs(base)
    made_at = (first / "postgres").stat().st_ctime_ns
    assert copied_programs(base) == first
    assert (first / "postgres").stat().st_ctime_ns == made_at
    assert all(path.stat().st_mode & 0o004 for path in first.parent.rglob("*") if path.is_file())


def test_the_data_of_a_run_folder_that_was_removed_are_not_found_again(tmp_path: Path, base: Path) -> None:
    base.mkdir()
    with RunFolder(tmp_path / "run") as run:
        kept = shared_place(run, base=base)
        (kept / "postgresql").mkdir()
    with RunFolder(tmp_path / "run") as run:
        assert (shared_place(run, base=base) / "postgresql").exists()
    (tmp_path / "run").rename(tmp_path / "removed")
    with RunFolder(tmp_path / "run") as run:
        assert shared_place(run, base=base) == kept
        assert not (kept / "postgresql").exists()


def test_what_a_killed_run_was_to_discard_is_swept_once_its_folder_is_gone(tmp_path: Path, base: Path) -> None:
    base.mkdir()
    with RunFolder(tmp_path / "killed", data=Data.DISCARD) as run:
        left = shared_place(run, base=base)
        (tmp_path / "killed").rename(tmp_path / "removed")
        with RunFolder(tmp_path / "next", data=Data.DISCARD) as other:
            shared_place(other, base=base)
        assert not left.exists()
        (tmp_path / "removed").rename(tmp_path / "killed")


def test_neither_another_user_nor_the_server_s_own_can_connect(
    run: RunFolder, supervisor: Supervisor, user: ServerUser
) -> None:
    url = make_url(PostgreSQL(run).start(supervisor))
    address = f"host={url.query['host']} port=5432 user={url.username} dbname={url.database}"
    said = {}
    for uid in (user.uid, 1):
        line = [sys.executable, "-c", AS_ANOTHER, address, str(uid)]
        said[uid] = subprocess.run(line, capture_output=True, text=True, check=False).stderr
    assert "Peer authentication failed" in said[user.uid]
    assert "Permission denied" in said[1]

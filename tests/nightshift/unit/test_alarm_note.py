"""A note that is left though the disk is full."""

import resource
import subprocess
import sys
from pathlib import Path

from nightshift.alarm_note import AlarmNote, is_full
from nightshift.journal import Journal

WHERE_NO_FILE_GROWS = """
import resource, sys
from pathlib import Path
from nightshift.errors import NightError
from nightshift.journal import Journal
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    for number in range(100):
        Journal(Path(sys.argv[1])).write("started", job="x" * 5000)
except NightError as error:
    print(error)
"""


def test_a_line_is_read_as_it_was_left_and_the_last_one_stays(tmp_path: Path) -> None:
    note = AlarmNote(tmp_path / "journal")
    note.prepare()
    assert note.read() is None
    note.leave("Platte voll: Käse")
    assert note.read() == "Platte voll: Käse"
    note.leave("kurz")
    assert note.read() == "kurz"
    note.leave("x" * 5000)
    assert note.read() == "x" * 1024


def test_leaving_a_line_takes_no_more_room(tmp_path: Path) -> None:
    note = AlarmNote(tmp_path)
    note.prepare()
    before = sum(path.stat().st_size for path in tmp_path.iterdir())
    note.leave("x" * 5000)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == before


def test_a_note_that_was_not_prepared_is_not_made_and_nobody_is_troubled(tmp_path: Path) -> None:
    note = AlarmNote(tmp_path / "nowhere")
    note.leave("anything")
    assert note.read() is None
    assert not (tmp_path / "nowhere").exists()


def test_a_night_begins_with_an_empty_note(tmp_path: Path) -> None:
    note = AlarmNote(tmp_path)
    note.prepare()
    note.leave("of the night before")
    note.prepare()
    assert note.read() is None


def test_a_journal_that_cannot_be_written_leaves_a_note(tmp_path: Path) -> None:
    AlarmNote(tmp_path).prepare()
    command = [sys.executable, "-c", WHERE_NO_FILE_GROWS, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    line = AlarmNote(tmp_path).read()
    assert line == ended.stdout.strip()
    assert line == f"journal in {tmp_path}: cannot be written (No space left on device); free space there"


def test_a_journal_that_can_be_written_leaves_none(tmp_path: Path) -> None:
    AlarmNote(tmp_path).prepare()
    Journal(tmp_path).write("started", job="one")
    assert AlarmNote(tmp_path).read() is None


def test_a_disk_is_full_when_it_has_less_than_the_spare_room(tmp_path: Path) -> None:
    assert not is_full(tmp_path, spare_bytes=1)
    assert is_full(tmp_path, spare_bytes=2**62)
    assert not is_full(tmp_path / "nowhere", spare_bytes=2**62)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 4096  # the limit above was the other process's alone

"""The night's journal: one file a process, whole lines, and a clear word when the disk is full."""

import json
import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest
from celery.exceptions import Reject, Retry

from nightshift.errors import NightError
from nightshift.journal import CLICKED, STARTED, Journal, read, tried_again_for
from slackwater.errors import StaleFence

WRITE_MUCH = """
import sys
from pathlib import Path
from nightshift.errors import NightError
from nightshift.journal import Journal
journal = Journal(Path(sys.argv[1]))
try:
    for number in range(100):
        journal.write("started", job="x" * 1000)
except NightError as error:
    print(error)
journal.write("ended", job="afterwards")
"""


def write_from_a_fork(journal: Journal) -> None:
    journal.write(STARTED, job="forked")


def test_events_are_read_as_they_were_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.write(CLICKED, job="Käse\u2028\u0085", run_id=7)
    journal.write_all([{"event": STARTED, "job": "one"}, {"event": STARTED, "job": "two"}])
    events = list(read(tmp_path / "journal"))
    assert [(event["event"], event["job"]) for event in events] == [
        (CLICKED, "Käse\u2028\u0085"),
        (STARTED, "one"),
        (STARTED, "two"),
    ]
    assert events[0]["run_id"] == 7


def test_a_folder_that_is_not_there_has_no_events(tmp_path: Path) -> None:
    assert list(read(tmp_path / "nowhere")) == []


def test_a_forked_process_writes_into_a_file_of_its_own(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write(STARTED, job="parent")
    process = multiprocessing.get_context("fork").Process(target=write_from_a_fork, args=(journal,))
    process.start()
    process.join(20)
    journal.write(STARTED, job="parent again")
    assert process.exitcode == 0
    files = [[json.loads(line)["job"] for line in path.read_text().splitlines()] for path in tmp_path.iterdir()]
    assert sorted(files) == [["forked"], ["parent", "parent again"]]
    assert len(list(read(tmp_path))) == 3


@pytest.mark.parametrize("torn", ['{"event":"ended","jo', '{"event":"ended","job":"K', '{"event":"ended"}'])
def test_a_last_line_that_a_killed_process_left_unfinished_is_passed_over(tmp_path: Path, torn: str) -> None:
    Journal(tmp_path).write(STARTED, job="whole")
    [file] = tmp_path.iterdir()
    with file.open("a") as appended:
        appended.write(torn)
    assert [event["job"] for event in read(tmp_path)] == ["whole"]


def test_a_character_cut_in_the_middle_is_passed_over_with_its_line(tmp_path: Path) -> None:
    Journal(tmp_path).write(STARTED, job="whole")
    [file] = tmp_path.iterdir()
    with file.open("ab") as appended:
        appended.write('{"event":"ended","job":"Kä'.encode()[:-1])
    assert [event["job"] for event in read(tmp_path)] == ["whole"]


def test_a_full_disk_is_one_clear_sentence(tmp_path: Path) -> None:
    limited = ["sh", "-c", 'ulimit -f 16 && trap "" XFSZ && exec "$@"', "sh"]
    command = [*limited, sys.executable, "-B", "-c", WRITE_MUCH, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.stderr == ""
    assert ended.stdout.strip().endswith("cannot be written (No space left on device); free space there")
    assert str(tmp_path) in ended.stdout
    jobs = [event["job"] for event in read(tmp_path)]
    assert 1 < len(jobs) < 100
    assert "afterwards" in jobs


def test_a_folder_that_cannot_be_made_is_one_clear_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NightError, match=r"journal in .*file.*cannot be written \(Not a directory\)"):
        Journal(tmp_path / "file" / "journal").write(STARTED, job="one")


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        (Retry("later", exc=OSError("away")), "OSError"),
        (Reject(StaleFence("account:7", 3), requeue=True), "StaleFence"),
        (Reject(StaleFence("account:7", 3), requeue=False), None),
        (Retry("later"), None),
        (17, None),
        (OSError("it failed"), None),
    ],
)
def test_why_a_body_comes_again_is_told_by_what_it_returned(returned: object, why: str | None) -> None:
    assert tried_again_for(returned) == why

"""What a run writes down for the next one."""

import signal
from pathlib import Path

import pytest

from slackwater.adapters.embedded.outside import OutsideFolder, belongs_to, mark_owner, read_outside, write_outside
from slackwater.adapters.embedded.process_record import ProcessRecord, RecordedProcess, read_record, write_record
from slackwater.adapters.embedded.processes import MARK, ProcessId, mark_for

SLEEPER = RecordedProcess(name="sleeper", process=ProcessId(pid=7, created=1764000000.25), stop_signal=signal.SIGINT)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = ProcessRecord(run="a1", children=(SLEEPER,))
    write_record(tmp_path / "processes.json", record)
    assert read_record(tmp_path / "processes.json") == record


@pytest.mark.parametrize("content", ["", "{", "[]", '{"run": "a1", "children": [{"name": "sleeper"}]}'])
def test_a_record_that_cannot_be_read_counts_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "processes.json").write_text(content)
    assert read_record(tmp_path / "processes.json") is None


def test_folders_elsewhere_are_read_as_they_were_written_and_the_list_goes_with_the_last(tmp_path: Path) -> None:
    listed, folders = tmp_path / "outside.json", [OutsideFolder(path=Path("/somewhere"), holds_data=True)]
    write_outside(listed, folders)
    assert read_outside(listed) == folders
    write_outside(listed, [])
    assert not listed.exists()


def test_a_folder_belongs_only_to_the_run_that_it_names(tmp_path: Path) -> None:
    assert not belongs_to(tmp_path, Path("/run"))
    mark_owner(tmp_path, Path("/run"))
    assert belongs_to(tmp_path, Path("/run"))
    assert not belongs_to(tmp_path, Path("/other"))


def test_a_run_within_a_run_bears_both_marks() -> None:
    outer = mark_for("a1", {})
    assert mark_for("b2", outer) == {MARK: "a1:b2"}

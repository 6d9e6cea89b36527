"""What is left when a run is killed, and what the next run makes of it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from slackwater.local import RunFolder, RunFolderInUse

Start = Callable[..., "subprocess.Popen[str]"]
Eventually = Callable[[Callable[[], bool]], None]
Runs = Callable[[int], bool]

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends children with their parent on Linux")


def pids_of(run: "subprocess.Popen[str]") -> dict[str, int]:
    assert run.stdout is not None
    pids: dict[str, int] = json.loads(run.stdout.readline())
    return pids


@linux_only
def test_kill_9_of_a_run_leaves_no_process(
    tmp_path: Path, start_run: Start, eventually: Eventually, runs: Runs
) -> None:
    run = start_run(tmp_path / "run", "valkey", "postgresql", "sleeper")
    pids = pids_of(run)
    assert set(pids) == {"valkey", "postgresql", "sleeper"}
    family = {each.pid for each in psutil.Process(run.pid).children(recursive=True)}
    assert family > set(pids.values()), "PostgreSQL has children of its own"
    run.kill()
    run.wait()
    eventually(lambda: not any(runs(pid) for pid in family))


@linux_only
def test_the_next_run_ends_what_survived_a_killed_one_and_says_so(tmp_path: Path, start_run: Start, runs: Runs) -> None:
    run = start_run(tmp_path / "run", "survivor")
    pid = pids_of(run)["survivor"]
    run.kill()
    run.wait()
    assert runs(pid)
    with RunFolder(tmp_path / "run") as folder:
        assert not runs(pid)
        assert f"survivor (pid {pid})" in "".join(folder.cleaned)


def test_a_recorded_pid_that_is_somebody_elses_by_now_is_left_alone(
    tmp_path: Path, start_run: Start, eventually: Eventually, runs: Runs
) -> None:
    run = start_run(tmp_path / "run", "sleeper")
    pid = pids_of(run)["sleeper"]
    run.kill()
    run.wait()
    eventually(lambda: not runs(pid))
    record = tmp_path / "run" / "processes.json"
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as stranger:
        record.write_text(record.read_text().replace(f'"pid": {pid}', f'"pid": {stranger.pid}'))
        content = json.loads(record.read_text())
        content["children"][0]["process"]["created"] -= 60
        record.write_text(json.dumps(content))
        with RunFolder(tmp_path / "run") as folder:
            assert runs(stranger.pid)
            assert "no process of it was left" in "".join(folder.cleaned)
        stranger.kill()


def test_a_second_run_in_the_same_folder_is_told_who_has_it(tmp_path: Path, start_run: Start) -> None:
    run = start_run(tmp_path / "run", "sleeper")
    pids_of(run)
    with pytest.raises(RunFolderInUse) as refused:
        RunFolder(tmp_path / "run")
    told = str(refused.value)
    assert told.startswith(f"another run (pid {run.pid}, since ")
    assert told.endswith(f") uses {tmp_path / 'run'}; wait for it to end, or pass another folder")


def test_a_run_that_ended_well_leaves_nothing_to_clean(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run") as first:
        assert not first.cleaned
    with RunFolder(tmp_path / "run") as second:
        assert not second.cleaned

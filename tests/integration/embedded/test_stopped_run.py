"""A run that is asked to stop, two runs at once, and children's children that follow their parent."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from slackwater.local import Child, RunFolder, StartInterrupted, StopSignals, Supervisor

Eventually = Callable[[Callable[[], bool]], None]
Runs = Callable[[int], bool]

ORDERLY = """
import json, sys
from datetime import timedelta
from pathlib import Path
from slackwater.local import Child, Data, RunFolder, StopSignals, Supervisor, Valkey
with StopSignals() as stop, RunFolder(Path(sys.argv[1]), data=Data.DISCARD) as run, Supervisor(run) as supervisor:
    Valkey(run).start(supervisor)
    supervisor.start(Child(name="sleeper", argv=("sleep", "600"), log_path=run.log("sleeper")))
    print(json.dumps(dict(supervisor.pids)), flush=True)
    stop.wait(timedelta(seconds=100))
print("stopped by", stop.received[0].name)
"""
FAMILY = """
import os, sys, time
from slackwater.local import follow_parent
parent = os.getpid()
if os.fork() == 0:
    os.setsid()
    follow_parent(parent)
    print(os.getpid(), flush=True)
time.sleep(600)
"""


@pytest.fixture
def orderly() -> Iterator[Callable[[Path], "subprocess.Popen[str]"]]:
    """Start a run in a process of its own."""
    started: list[subprocess.Popen[str]] = []

    def start(folder: Path) -> "subprocess.Popen[str]":
        line = [sys.executable, "-c", ORDERLY, str(folder)]
        started.append(subprocess.Popen(line, stdout=subprocess.PIPE, text=True, start_new_session=True))
        return started[-1]

    yield start
    for each in started:
        with each:
            each.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_asked_to_stop_stops_everything_and_gives_its_folder_back(
    tmp_path: Path, orderly: Callable[[Path], "subprocess.Popen[str]"], *, runs: Runs, number: signal.Signals
) -> None:
    run = orderly(tmp_path / "run")
    assert run.stdout is not None
    pids = json.loads(run.stdout.readline())
    os.killpg(run.pid, number)  # as a terminal does: to the whole group, in which no child is
    assert run.communicate()[0] == f"stopped by {number.name}\n"
    assert run.returncode == 0
    assert not any(runs(pid) for pid in pids.values())
    with RunFolder(tmp_path / "run") as folder:
        assert not folder.cleaned
        assert not list(folder.data.iterdir())


def test_two_runs_in_different_folders_do_not_meet(
    tmp_path: Path, orderly: Callable[[Path], "subprocess.Popen[str]"], runs: Runs
) -> None:
    pids = []
    for run in [orderly(tmp_path / name) for name in ("one", "two")]:
        assert run.stdout is not None
        pids.append(json.loads(run.stdout.readline()))
        if len(pids) == 2:
            run.terminate()
            run.wait()
    assert all(runs(pid) for pid in pids[0].values())
    assert not any(runs(pid) for pid in pids[1].values())


def test_a_signal_while_a_child_starts_ends_the_wait_and_the_child(run: RunFolder, runs: Runs) -> None:
    with StopSignals() as stop, Supervisor(run, interrupted=lambda: stop.requested) as supervisor:
        child = Child(name="sleeper", argv=("sleep", "600"), log_path=run.log("sleeper"))
        pids: list[int] = []

        def never() -> bool:
            pids.append(supervisor.pids["sleeper"])
            os.kill(os.getpid(), signal.SIGTERM)
            return False

        with pytest.raises(StartInterrupted, match="asked to stop while sleeper was starting"):
            supervisor.start(child, ready=never)
        assert not runs(pids[0])


def test_a_second_signal_while_stopping_kills_at_once(run: RunFolder, supervisor: Supervisor, runs: Runs) -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True)"
    child = Child(
        name="stubborn",
        argv=(sys.executable, "-c", f"{code}; time.sleep(600)"),
        log_path=run.log("stubborn"),
        stop_within=timedelta(seconds=100),
    )
    pid = supervisor.start(child, ready=lambda: "ready" in child.log_path.read_text())
    impatient = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    impatient.start()
    supervisor.stop_all()
    impatient.join()
    assert not runs(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it is a thread that looks, not the kernel")
def test_a_child_s_child_in_a_session_of_its_own_follows_its_parent(
    tmp_path: Path, eventually: Eventually, runs: Runs
) -> None:
    with subprocess.Popen([sys.executable, "-c", FAMILY], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        grandchild = int(parent.stdout.readline())
        assert runs(grandchild)
        parent.kill()
    eventually(lambda: not runs(grandchild))

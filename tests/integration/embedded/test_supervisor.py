"""Children that die, that will not stop, and that leave others behind."""

import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import psutil  # type: ignore[import-untyped]
import pytest

from slackwater.errors import LocalServiceError
from slackwater.local import Child, ChildDied, ChildNotReady, RunFolder, Supervisor

Eventually = Callable[[Callable[[], bool]], None]
Runs = Callable[[int], bool]

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"
)
PARENT = "import subprocess, time; print(subprocess.Popen(['sleep', '600']).pid, flush=True); time.sleep(600)"
TALKER = "for number in range(1000): print('line', number)\nraise SystemExit(3)"


def python(name: str, code: str, run: RunFolder, *, stop_within: timedelta = timedelta(seconds=5)) -> Child:
    return Child(name=name, argv=[sys.executable, "-c", code], log_path=run.log(name), stop_within=stop_within)


def death(supervisor: Supervisor, eventually: Eventually) -> ChildDied:
    seen: list[ChildDied] = []

    def seen_one() -> bool:
        seen.extend(filter(None, [supervisor.poll()]))
        return bool(seen)

    eventually(seen_one)
    return seen[0]


def test_a_child_that_is_killed_is_reported_once_with_its_name_and_signal(
    run: RunFolder, supervisor: Supervisor, eventually: Eventually
) -> None:
    pid = supervisor.start(Child(name="sleeper", argv=["sleep", "600"], log_path=run.log("sleeper")))
    assert supervisor.poll() is None
    os.kill(pid, signal.SIGKILL)
    died = death(supervisor, eventually)
    assert (died.name, died.pid, died.signal, died.exit_code) == ("sleeper", pid, signal.SIGKILL, None)
    assert str(died) == f"sleeper (pid {pid}) was killed by SIGKILL"
    assert supervisor.poll() is None


def test_a_child_that_ends_is_reported_with_its_exit_code_and_the_end_of_its_log(
    run: RunFolder, supervisor: Supervisor, eventually: Eventually
) -> None:
    supervisor.start(python("talker", TALKER, run))
    died = death(supervisor, eventually)
    assert (died.signal, died.exit_code) == (None, 3)
    assert died.last_lines[-1] == "line 999"
    assert len(died.last_lines) <= 50


def test_stop_kills_a_child_that_ignores_sigterm(run: RunFolder, supervisor: Supervisor, runs: Runs) -> None:
    child = python("stubborn", STUBBORN, run, stop_within=timedelta(seconds=0.2))
    pid = supervisor.start(child, ready=lambda: "ready" in child.log_path.read_text())
    supervisor.stop()
    assert not runs(pid)
    assert not supervisor.pids


def test_a_childs_own_children_end_with_it(
    run: RunFolder, supervisor: Supervisor, eventually: Eventually, runs: Runs
) -> None:
    child = python("parent", PARENT, run)
    pid = supervisor.start(child, ready=lambda: child.log_path.read_text().strip().isdigit())
    grandchild = int(child.log_path.read_text())
    assert runs(grandchild)
    os.kill(pid, signal.SIGKILL)
    death(supervisor, eventually)
    assert not runs(grandchild)


def test_a_child_that_hangs_takes_its_descendants_along_whatever_session_they_lead_and_mark_they_bear(
    run: RunFolder, supervisor: Supervisor, runs: Runs, eventually: Eventually
) -> None:
    code = PARENT.replace("['sleep', '600']", "['/bin/sleep', '600'], start_new_session=True, env={}")
    child = python("parent", code, run, stop_within=timedelta(milliseconds=100))
    pid = supervisor.start(child, ready=lambda: child.log_path.read_text().strip().isdigit())
    grandchild = int(child.log_path.read_text())
    for each in (psutil.Process(pid), psutil.Process(grandchild)):
        each.suspend()
        eventually(lambda each=each: each.status() == psutil.STATUS_STOPPED)  # type: ignore[misc]
    supervisor.stop("parent")
    assert not runs(grandchild)


def test_all_children_stop_in_reverse_order(run: RunFolder, supervisor: Supervisor) -> None:
    code = "import signal, sys, time\n"
    code += "signal.signal(signal.SIGTERM, lambda *_: sys.exit(print(sys.argv[1], file=open(sys.argv[2], 'a'))))\n"
    code += "print('ready', flush=True)\ntime.sleep(600)"
    ends = run.path / "ends"
    for name in ("first", "second", "third"):
        child = Child(name=name, argv=[sys.executable, "-c", code, name, str(ends)], log_path=run.log(name))
        supervisor.start(child, ready=lambda log=child.log_path: "ready" in log.read_text())
    supervisor.stop()
    assert ends.read_text().split() == ["third", "second", "first"]


def test_a_child_that_ends_before_it_is_ready_is_an_error_with_its_last_words(
    run: RunFolder, supervisor: Supervisor
) -> None:
    with pytest.raises(ChildNotReady, match=r"hasty \(pid \d+\) ended with exit code 1 .*no such luck"):
        supervisor.start(python("hasty", "raise SystemExit('no such luck')", run), ready=lambda: False)
    assert not supervisor.pids


def test_a_child_is_refused_outside_the_main_thread(run: RunFolder, supervisor: Supervisor) -> None:
    child = Child(name="sleeper", argv=["sleep", "600"], log_path=run.log("sleeper"))
    with ThreadPoolExecutor(1) as pool:
        refused = pool.submit(supervisor.start, child).exception()
    assert isinstance(refused, LocalServiceError)
    assert "main thread" in str(refused)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_child_that_is_stopped_ends_in_order_all_the_same(
    run: RunFolder, supervisor: Supervisor, eventually: Eventually, runs: Runs, number: signal.Signals
) -> None:
    child = python("parent", PARENT, run, stop_within=timedelta(seconds=60))
    child = replace(child, stop_signal=number)
    pid = supervisor.start(child, ready=lambda: child.log_path.read_text().strip().isdigit())
    family = (psutil.Process(pid), psutil.Process(int(child.log_path.read_text())))
    for each in family:
        each.suspend()
    eventually(lambda: {each.status() for each in family} == {psutil.STATUS_STOPPED})
    began = time.monotonic()
    supervisor.stop("parent")
    assert time.monotonic() - began < child.stop_within.total_seconds()
    assert not any(runs(each.pid) for each in family)

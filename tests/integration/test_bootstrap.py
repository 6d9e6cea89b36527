"""The set-up of a clone: interrupted, killed, and in a folder that cannot be written."""

import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
from tests import waiting

ROOT = Path(__file__).parents[2]
MADE_FROM = ("tools/bootstrap.py", "requirements/requirements.txt", "pyproject.toml", "nightshift/pyproject.toml")
eventually = partial(waiting.eventually, within_s=30)
SLOW_BUILD = """\
import sys
sys.path.insert(0, "tools")
import bootstrap
works = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
works += "print('under way', flush=True); time.sleep(600)"
bootstrap.build = lambda: bootstrap.run([sys.executable, "-c", works])
sys.exit(bootstrap.main())
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone without an environment."""
    for name in MADE_FROM:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def slow(clone: Path) -> subprocess.Popen[str]:
    """A set-up that is under way, and does not end by itself."""
    line = [sys.executable, "-c", SLOW_BUILD]
    setup = subprocess.Popen(line, cwd=clone, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert setup.stdout is not None
    assert setup.stdout.readline() == "under way\n"
    return setup


def set_up(clone: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, str(clone / "tools" / "bootstrap.py")]
    return subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)


def runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_ctrl_c_is_one_line_and_ends_all_that_was_started(slow: subprocess.Popen[str]) -> None:
    started = psutil.Process(slow.pid).children(recursive=True)
    assert len(started) == 2
    slow.send_signal(signal.SIGINT)
    _, err = slow.communicate(timeout=60)
    assert (slow.returncode, err) == (130, "setup: stopped; run the same again to go on\n")
    eventually(lambda: not any(map(runs, started)))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's death")
def test_kill_9_ends_what_it_runs(slow: subprocess.Popen[str]) -> None:
    started = psutil.Process(slow.pid).children(recursive=True)
    [child] = psutil.Process(slow.pid).children()
    slow.kill()
    slow.wait(60)
    eventually(lambda: not runs(child))
    for left in started:  # of the child's own: the kernel does not follow that far
        if runs(left):
            left.kill()
    slow.communicate()


def test_a_whole_environment_is_found_where_the_folder_cannot_be_written(clone: Path) -> None:
    (clone / ".bootstrap.lock").mkdir()  # a lock that cannot be opened, for root neither
    code = "import sys; sys.path.insert(0, 'tools'); import bootstrap; print(bootstrap.wanted())"
    stamp = subprocess.run([sys.executable, "-c", code], cwd=clone, capture_output=True, text=True, check=True).stdout
    (clone / ".venv" / "bin").mkdir(parents=True)
    (clone / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (clone / ".venv" / ".slackwater-stamp").write_text(stamp.strip())
    done = set_up(clone)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_folder_that_cannot_be_written_is_one_line(clone: Path) -> None:
    (clone / ".bootstrap.lock").mkdir()
    done = set_up(clone)
    assert done.returncode == 1
    assert done.stderr == f"setup: failed: {clone / '.bootstrap.lock'}: Is a directory; make it writable\n"

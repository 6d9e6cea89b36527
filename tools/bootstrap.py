"""Make the virtual environment: the pinned set, then this project, editable.

Runs under any Python from 3.11 on, with the standard library alone. Two at once wait for each other (a lock file);
a run that was killed half-way leaves no stamp behind, so the next one starts afresh, and what it ran ends with it.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / ".slackwater-stamp"
PINS = ROOT / "requirements" / "requirements.txt"
OLDEST = (3, 11)
EXIT_INTERRUPTED = 130
PR_SET_PDEATHSIG = 1


def wanted() -> str:
    """Return the digest of all that the environment is made from."""
    digest = hashlib.sha256(f"{sys.version_info[:3]} {ROOT}".encode())
    for path in (PINS, ROOT / "pyproject.toml", ROOT / "nightshift" / "pyproject.toml", Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def fresh() -> bool:
    """Tell whether the environment there is made from what is wanted now."""
    return STAMP.is_file() and STAMP.read_text() == wanted() and (VENV / "bin" / "python").exists()


def say(text: str) -> None:
    """Print one line of progress."""
    print(f"setup: {text}", flush=True)


def run(command: Sequence[str]) -> None:
    """Run a command that ends when this process does, however that ends.

    It has a session of its own: a terminal's Ctrl-C reaches it through here alone, and prints no traceback of its.

    Raises:
        CalledProcessError: It failed.
    """
    parent = os.getpid()

    def die_with_parent() -> None:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)

    child = subprocess.Popen(command, cwd=ROOT, start_new_session=True, preexec_fn=die_with_parent)  # noqa: PLW1509 - one thread
    try:
        code = child.wait()
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # with the programs that it has started
        child.wait()
        raise
    if code:
        raise subprocess.CalledProcessError(code, command)


def pip(*words: str) -> None:
    """Run the environment's pip; its own error text is the message on failure."""
    run([str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "-qq", *words])


def build() -> None:
    """Make the environment anew."""
    say(f"making .venv with Python {sys.version.split()[0]} (once; a minute or so)")
    shutil.rmtree(VENV, ignore_errors=True)
    run([sys.executable, "-m", "venv", str(VENV)])
    say("installing the pinned set")
    pip("--require-hashes", "--only-binary", ":all:", "-r", str(PINS))
    say("installing slackwater and nightshift")
    pip("--no-deps", "--no-build-isolation", "-e", str(ROOT), "-e", str(ROOT / "nightshift"))
    STAMP.write_text(wanted())
    say("done")


def main() -> int:
    """Bring `.venv` up to date, once, whoever else tries at the same time."""
    if sys.version_info < OLDEST:
        print(
            f"setup: Python {'.'.join(map(str, OLDEST))} or newer is needed, this is {sys.version.split()[0]}; "
            "run `make PYTHON=/path/to/a/newer/python3`",
            file=sys.stderr,
        )
        return 2
    try:
        return ensure()
    except KeyboardInterrupt:
        print("setup: stopped; run the same again to go on", file=sys.stderr)
        return EXIT_INTERRUPTED
    except subprocess.CalledProcessError as error:
        print(
            f"setup: failed: {' '.join(map(str, error.cmd[:6]))} … ended with {error.returncode}; "
            "its message is above. Check that a package index is reachable, then run the same again.",
            file=sys.stderr,
        )
    except OSError as error:
        print(f"setup: failed: {error.filename or ROOT}: {error.strerror}; make it writable", file=sys.stderr)
    return 1


def ensure() -> int:
    """Build the environment unless it is there, one process at a time; no lock is needed to see that it is whole."""
    if fresh():
        return 0
    with (ROOT / ".bootstrap.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another set-up is under way in this folder; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not fresh():
            build()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

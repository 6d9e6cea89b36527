"""Die when the parent dies: PR_SET_PDEATHSIG, and the launcher that sets it for any program.

The supervisor starts every child through this file, run as a script by the bare interpreter (`-I -S`, about 20 ms): it
takes the child's place by exec after it gave up its privileges (setuid clears the setting, so this comes first), asked
the kernel for a signal at the parent's death, and made sure that the parent had not died before it asked. The standard
library alone is imported here, since the script sees no installed package.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

_PR_SET_PDEATHSIG = 1
_LOOK_EVERY_S = 0.5
_NOT_FOUND = 127
_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)


def follow_parent(parent_pid: int | None = None, *, with_signal: signal.Signals = signal.SIGKILL) -> None:
    """Have this process end when its parent ends, also by kill -9: for children's children, such as a pool's processes.

    On Linux by the kernel (which follows the parent's *thread*: fork from the main thread); elsewhere a thread looks
    every half second.

    Args:
        parent_pid: The parent as the parent itself knows it, taken before the fork; None takes the parent of now, and
            misses one that died before this call.
        with_signal: What this process gets; at once when the parent is gone already.
    """
    expected = os.getppid() if parent_pid is None else parent_pid
    if sys.platform == "linux":
        _ask_for_a_signal(with_signal)
    else:
        threading.Thread(target=_watch, args=(expected, with_signal), name="follow-parent", daemon=True).start()
    if os.getppid() != expected:
        os.kill(os.getpid(), with_signal)


def launch_line(
    argv: Sequence[str], *, at_parents_death: signal.Signals, user: tuple[int, int] | None = None
) -> list[str]:
    """Return the command line that runs `argv` as a follower of this process, as another (uid, gid) if wanted."""
    drop = "-" if user is None else f"{user[0]}:{user[1]}"
    settings = [str(os.getpid()), str(int(at_parents_death)), drop]
    return [sys.executable, "-I", "-S", __file__, *settings, *argv]


def _launch(arguments: Sequence[str], environ: Mapping[str, str]) -> None:
    parent_pid, number, drop, *argv = arguments
    if drop != "-":
        uid, gid = (int(part) for part in drop.split(":"))
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if sys.platform == "linux":
        _ask_for_a_signal(signal.Signals(int(number)))
    if os.getppid() != int(parent_pid):
        sys.exit(f"{argv[0]}: the process that started it has ended")
    # The interpreter ignores SIGPIPE, and a shell's background job SIGINT; these and a mask would outlive the exec.
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for each in _HANDLED:
        signal.signal(each, signal.SIG_DFL)
    try:
        os.execve(argv[0], argv, environ)  # noqa: S606
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: cannot be run: {error.strerror}\n")
        os._exit(_NOT_FOUND)


def _ask_for_a_signal(number: signal.Signals) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")


def _watch(parent_pid: int, number: signal.Signals) -> None:
    while os.getppid() == parent_pid:
        time.sleep(_LOOK_EVERY_S)
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        _launch(sys.argv[1:], os.environ)

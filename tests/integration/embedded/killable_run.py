"""A run to be killed: `killable_run.py FOLDER CHILD...` starts children, prints their pids as JSON, and waits.

Children: `valkey`, `postgresql`, `sleeper`, and `survivor` (it undoes what ends it with its parent).
"""

import json
import signal
import sys
from pathlib import Path

from slackwater.local import Child, Data, PostgreSQL, RunFolder, Supervisor, Valkey

SURVIVOR = "import ctypes, time; ctypes.CDLL(None).prctl(1, 0); print('ready', flush=True); time.sleep(600)"


def main(folder: Path, children: list[str]) -> None:
    with RunFolder(folder, data=Data.DISCARD) as run, Supervisor(run) as supervisor:
        for name in children:
            start(name, run, supervisor)
        print(json.dumps(dict(supervisor.pids)), flush=True)  # noqa: T201
        signal.pause()


def start(name: str, run: RunFolder, supervisor: Supervisor) -> None:
    match name:
        case "valkey":
            Valkey(run).start(supervisor)
        case "postgresql":
            PostgreSQL(run).start(supervisor)
        case "sleeper":
            supervisor.start(Child(name=name, argv=["sleep", "600"], log_path=run.log(name)))
        case "survivor":
            child = Child(name=name, argv=[sys.executable, "-c", SURVIVOR], log_path=run.log(name))
            supervisor.start(child, ready=lambda: "ready" in child.log_path.read_text())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

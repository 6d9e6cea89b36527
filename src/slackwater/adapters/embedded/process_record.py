"""The record of a run's processes, from which the next run ends what a killed one left behind."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path

from slackwater.adapters.embedded import processes
from slackwater.adapters.embedded.processes import ProcessId

_STOP_WITHIN = timedelta(seconds=10)
_TERM_WITHIN = timedelta(seconds=2)


@dataclass(frozen=True, kw_only=True)
class RecordedProcess:
    """A child as it was started.

    Attributes:
        name: The child's.
        process: Its pid and time of creation.
        stop_signal: What asks it to end.
    """

    name: str
    process: ProcessId
    stop_signal: signal.Signals


@dataclass(frozen=True, kw_only=True)
class ProcessRecord:
    """The processes of one run.

    Attributes:
        run: The run's own name, which also marks the environment of its processes.
        children: Those that were started and have not been ended.
    """

    run: str
    children: tuple[RecordedProcess, ...] = ()


def write_record(path: Path, record: ProcessRecord) -> None:
    """Replace the record, in one step (a reader sees the old one or the new one)."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(asdict(record), indent=1) + "\n")
    os.replace(partial, path)  # noqa: PTH105


def read_record(path: Path) -> ProcessRecord | None:
    """Return the record that is there; None where there is none that can be read."""
    try:
        content = json.loads(path.read_text())
        children = tuple(
            RecordedProcess(
                name=each["name"],
                process=ProcessId(**each["process"]),
                stop_signal=signal.Signals(each["stop_signal"]),
            )
            for each in content["children"]
        )
        return ProcessRecord(run=content["run"], children=children)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def end_leftovers(record: ProcessRecord) -> tuple[str, ...]:
    """End the processes of a run that was killed: the recorded ones with their sessions, and all that bear its mark.

    Each recorded one is first asked as its run would have asked it. A recorded pid that belongs to another process by
    now is left alone.

    Returns:
        What was ended, as "NAME (pid N)".
    """
    leaders = {child: found for child in record.children if (found := processes.find(child.process)) is not None}
    names = {child.process.pid: child.name for child in leaders}
    those = {each.pid: each for child in leaders for each in processes.session_of(child.process.pid)}
    those |= {each.pid: each for each in processes.marked(record.run)}
    those.pop(os.getpid(), None)
    for child, found in leaders.items():
        processes.send(found, child.stop_signal)
    processes.wake(those.values())
    processes.wait_until_gone(leaders.values(), within=_STOP_WITHIN)
    processes.end(those.values(), term_within=_TERM_WITHIN)
    return tuple(f"{names.get(pid, 'a process of that run')} (pid {pid})" for pid in those)

"""What the night's processes take: memory at its peak, processor time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import psutil  # type: ignore[import-untyped]

from nightshift.report.night import ProcessUse

SAMPLE_EVERY_S = 2.0


@dataclass
class Meter:
    """Samples this process, and its children with their descendants, by name."""

    peaks: dict[str, int] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    peak_total_bytes: int = 0
    _next: float = 0.0

    def sample(self, children: Mapping[str, int]) -> None:
        """Take a sample of this process and its children (pid by name), at most every two seconds."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + SAMPLE_EVERY_S
        total, myself = 0, psutil.Process()
        for name, members in {"night": [myself], **_trees(myself, children)}.items():
            memory, cpu = _use_of(members)
            total += memory
            self.peaks[name] = max(self.peaks.get(name, 0), memory)
            self.cpu[name] = max(self.cpu.get(name, 0.0), cpu)
        self.peak_total_bytes = max(self.peak_total_bytes, total)

    def uses(self) -> list[ProcessUse]:
        """Return what was seen, and the peak of all together."""
        each = [ProcessUse(name=name, peak_rss_bytes=peak, cpu_s=self.cpu[name]) for name, peak in self.peaks.items()]
        return [
            *each,
            ProcessUse(name="all together", peak_rss_bytes=self.peak_total_bytes, cpu_s=sum(self.cpu.values())),
        ]


def _trees(above: psutil.Process, roots: Mapping[str, int]) -> dict[str, list[psutil.Process]]:
    """Return each of a process's children (pid by name) with its descendants.

    One look at all processes of the machine serves for all: that is what a sample costs most.
    """
    below: dict[int, list[psutil.Process]] = {}
    found = {each.pid: each for each in above.children(recursive=True)}
    for each in found.values():
        with suppress(psutil.Error):
            below.setdefault(each.ppid(), []).append(each)

    def tree(root: psutil.Process) -> list[psutil.Process]:
        return [root, *(member for child in below.get(root.pid, ()) for member in tree(child))]

    return {name: tree(found[pid]) if pid in found else [] for name, pid in roots.items()}


def _use_of(members: Sequence[psutil.Process]) -> tuple[int, float]:
    """Return memory in bytes and processor time in seconds of some processes.

    Memory is the proportional set size where the system tells it (pages shared by forks count once), else resident.
    """
    memory, cpu = 0, 0.0
    for member in members:
        try:
            full = member.memory_full_info()
            memory += getattr(full, "pss", full.rss)
            times = member.cpu_times()
            cpu += times.user + times.system
        except psutil.Error:
            continue
    return memory, cpu

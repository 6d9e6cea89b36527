"""The night's journal: what producers had confirmed, and what workers started and ended, as it happened.

One file a process, one line of JSON an event, appended in one write: a process that is killed leaves all that it
wrote before. The morning report reads them; no job waits for them.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any

from celery import Celery, signals
from celery.exceptions import Reject, Retry

from nightshift.alarm_note import AlarmNote
from nightshift.errors import NightError
from slackwater import Published, Slackwater
from slackwater.inspection import mark_of

PUBLISHED, STARTED, ENDED, CLICKED, ANSWERED = "published", "started", "ended", "clicked", "answered"
SWEPT = "swept"
STRUCK, RECOVERED = "struck", "recovered"


@dataclass(kw_only=False)
class Journal:
    """Appends events to this process's file in a folder."""

    folder: Path
    _file: tuple[int, int] | None = field(default=None, init=False)
    _opening: RLock = field(default_factory=RLock, init=False)

    def write(self, event: str, at: datetime | None = None, **facts: object) -> None:
        """Append one event.

        Raises:
            NightError: It cannot be written.
        """
        self.write_all([{"event": event, "at": (at or datetime.now(UTC)).isoformat(), **facts}])

    def write_all(self, events: Sequence[dict[str, object]]) -> None:
        """Append events in one write.

        Raises:
            NightError: They cannot be written. The note in the folder says so too, for the night to end.
        """
        text = "".join(json.dumps(event, separators=(",", ":"), ensure_ascii=False) + "\n" for event in events)
        try:
            self._append(text.encode())
        except OSError as error:
            line = f"journal in {self.folder}: cannot be written ({error.strerror}); free space there"
            # Celery's signals swallow what their receivers raise, and a night without its journal cannot be judged.
            AlarmNote(self.folder).leave(line)
            raise NightError(line) from error

    def _append(self, lines: bytes) -> None:
        if os.write(self._descriptor(), lines) < len(lines):
            # What comes next must not continue the line that was torn.
            self._file = None
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _descriptor(self) -> int:
        pid = os.getpid()
        with self._opening:
            if self._file is None or self._file[0] != pid:  # a forked process writes into a file of its own
                self.folder.mkdir(parents=True, exist_ok=True)
                path = self.folder / f"{pid}-{os.urandom(4).hex()}.jsonl"
                self._file = (pid, os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
            return self._file[1]


def read(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield all events of a folder, file by file; a last line that a killed process left unfinished is passed over."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_bytes().split(b"\n")[:-1]:
            yield json.loads(line)


def follow(app: Celery, sw: Slackwater, journal: Journal) -> None:
    """Write down what this application publishes (once the broker has confirmed it), starts and ends."""

    def published(jobs: Sequence[Published]) -> None:
        journal.write_all([_published(one) for one in jobs])

    def started(task_id: str = "", task: Any = None, **_: Any) -> None:
        if _is_ours(app, task):
            mark = mark_of(task.request)
            journal.write(
                STARTED,
                job=task_id,
                task=str(task.name),
                worker=str(task.request.hostname),
                lane=None if mark is None else mark.lane,
                published_at=None if mark is None else mark.published_at.isoformat(),
                start_by=None if mark is None or mark.start_by is None else mark.start_by.isoformat(),
                elastic=mark is not None and mark.elastic,
            )

    def ended(task_id: str = "", task: Any = None, state: str | None = None, retval: Any = None, **_: Any) -> None:
        if _is_ours(app, task):
            journal.write(ENDED, job=task_id, state=state or "", tried_again_for=tried_again_for(retval))

    sw.on_published(published)
    app.__dict__["journal_receivers"] = (started, ended)  # signals hold their receivers weakly
    signals.task_prerun.connect(started)
    signals.task_postrun.connect(ended)


def tried_again_for(returned: Any) -> str | None:
    """Return the kind of error for which a body, or its delivery, comes again; None for one that does not."""
    why = None
    if isinstance(returned, Retry):
        why = returned.exc
    elif isinstance(returned, Reject) and getattr(returned, "requeue", False):
        why = getattr(returned, "reason", None)
    return type(why).__name__ if isinstance(why, BaseException) else None


def _is_ours(app: Celery, task: Any) -> bool:
    """Tell whether a task is the product's own: it has a lane."""
    return task is not None and task.app is app and getattr(task, "lane", None) is not None


def _published(one: Published) -> dict[str, object]:
    return {
        "event": PUBLISHED,
        "at": one.published_at.isoformat(),
        "job": one.job,
        "task": one.task,
        "lane": one.lane,
        "parent": one.parent,
        "elastic": one.mark.elastic,
    }

"""What a night's acts share, and how it ends early."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from redis.exceptions import RedisError
from rich.console import Console
from sqlalchemy.exc import DBAPIError

from nightshift.alarm_note import FULL, AlarmNote, is_full, no_room
from nightshift.chaos.acts import kill_tree
from nightshift.course import Span
from nightshift.errors import NightError
from nightshift.ground import first_line
from nightshift.peers import PeerError
from nightshift.settings import NightSettings, Plan
from nightshift.usage import Meter
from nightshift.world_process import NAME as WORLD
from slackwater.errors import BrokerUnavailable, LocalServiceError, StoreUnavailable
from slackwater.local import ChildDied, PostgreSQL, RunFolder, StopSignals, Supervisor, Valkey

PEOPLE = "people"
JOURNAL = "journal"
OWN_SERVERS = frozenset({Valkey.name, PostgreSQL.name})
SERVERS = OWN_SERVERS | {WORLD}
_LOOK_EVERY_S = 0.25
_STOPS_WITHIN_S = 5.0


@dataclass(frozen=True, kw_only=True)
class NightOptions:
    """What a person asks of a night; see the command line's help."""

    minutes: float
    seed: int
    plan: Plan
    report: Path | None
    folder: Path
    world_port: int
    faults: Path | None
    broker_url: str | None
    store_url: str | None
    chaos: bool = False


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What a night's acts share once its servers run."""

    options: NightOptions
    folder: RunFolder
    stop: StopSignals
    supervisor: Supervisor
    console: Console
    settings: NightSettings
    meter: Meter
    name: str
    span: Span

    @property
    def database(self) -> str:
        """Return the name of the night's own database."""
        return f"nightshift_{self.name}"

    @property
    def prefix(self) -> str:
        """Return what the night's queues and keys begin with."""
        return f"night_{self.name}_"


@contextmanager
def ending_early(stage: Stage) -> Iterator[None]:
    """Say in one line why a night ends early, and end whoever works at once: its data are discarded anyway."""
    try:
        with _not_waiting_for_ever(stage):
            yield
    except BaseException as error:
        died = _died(stage)
        for name in set(stage.supervisor.pids) - SERVERS:
            with suppress(ProcessLookupError):
                os.kill(stage.supervisor.pids[name], signal.SIGKILL)
        if (line := _why(stage, error, died)) is not None:
            raise NightError(line) from error
        raise


def _why(stage: Stage, error: BaseException, died: ChildDied | None) -> str | None:
    """Decide what explains an error best, in one line; None where it explains itself."""
    if not isinstance(error, Exception):
        return None
    folder = stage.folder.path
    unreachable = isinstance(error, (DBAPIError, RedisError, BrokerUnavailable, StoreUnavailable)) or (
        isinstance(error, NightError) and isinstance(error.__cause__, PeerError)
    )
    expected = unreachable or isinstance(error, (OSError, NightError, LocalServiceError))
    if (isinstance(error, OSError) and error.errno in FULL) or (expected and is_full(folder)):
        return no_room(folder)
    if unreachable and stage.stop.requested:
        return _stopped_by_signal(stage)
    if unreachable and died is not None:  # a server that died explains it best
        return _stopped_by(died)
    return _first_words(error, folder)


def _first_words(error: Exception, folder: Path) -> str | None:
    if isinstance(error, (DBAPIError, RedisError)):
        return f"a server does not answer any more ({first_line(error)}); the night is stopped"
    if isinstance(error, OSError):
        return f"{error.filename or folder}: {error.strerror or first_line(error)}; the night is stopped"
    return None


def must_go_on(
    stage: Stage, *, before: str = "the night was over", or_else: Callable[[ChildDied], bool] = lambda _: False
) -> None:
    """Raise where somebody asked to stop, a process left a note, or one died.

    Args:
        stage: The night.
        before: What has not come about yet.
        or_else: Is given a process that died, and returns True where the night can go on all the same.

    Raises:
        NightError: Who or what ends the night, in one line.
    """
    if stage.stop.requested:
        raise NightError(_stopped_by_signal(stage, before=before))
    if (line := AlarmNote(stage.folder.path / JOURNAL).read()) is not None:
        raise NightError(f"{line}; the night is stopped")
    if (died := _died(stage)) is not None and not or_else(died):
        raise NightError(_stopped_by(died))


@contextmanager
def _not_waiting_for_ever(stage: Stage) -> Iterator[None]:
    """Once somebody has asked to stop, kill the night's own servers if it still waits for one that does not answer.

    A socket of this machine has no time limit: to a server that hangs, the main thread would listen for ever.
    """
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK_EVERY_S):
            if stage.stop.requested:
                break
        if not over.wait(_STOPS_WITHIN_S):
            for name in OWN_SERVERS & set(stage.supervisor.pids):
                kill_tree(stage.supervisor.pids[name])

    watcher = threading.Thread(target=watch, name="stop-watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _stopped_by_signal(stage: Stage, *, before: str = "the night was over") -> str:
    return f"stopped by {stage.stop.received[0].name} before {before}; nothing is left running"


def _died(stage: Stage) -> ChildDied | None:
    """Return a child that died; people may go home when they have clicked."""
    while (died := stage.supervisor.poll()) is not None:
        if died.name != PEOPLE or died.exit_code != 0:
            return died
    return None


def _stopped_by(died: ChildDied) -> str:
    return f"{died.sentence}; the night is stopped, its log is {died.log_path}"

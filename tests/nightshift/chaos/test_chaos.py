"""Chaos at work on real processes: who was struck comes back, and who died of something else is nobody's doing."""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from nightshift import journal
from nightshift.chaos.chaos import Chaos, Targets
from nightshift.chaos.strike import Strike, StrikeKind
from nightshift.report.gather import strikes_of
from slackwater.errors import StoreUnavailable
from slackwater.local import Child, ChildDied, Data, RunFolder, Supervisor
from slackwater.testing import FaultProxy

WITHIN_S = 30.0
BEGINS_AT = datetime(2026, 11, 30, tzinfo=UTC)
WORKER = """
import signal, subprocess, sys, time
pool = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) for _ in range(2)]
def end(*_):
    for each in pool:
        each.kill()
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
while True:
    for number, each in enumerate(pool):
        if each.poll() is not None:
            pool[number] = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    time.sleep(0.02)
"""


@dataclass
class Staged:
    """A chaos over one worker, one server and one link; its clock is the test's.

    Attributes:
        supervisor: Of the processes.
        link: The link.
        folder: Of the journal.
        worker: The worker.
        told: What it said.
        restarts: Servers that were started again.
        now: Since the night began.
    """

    supervisor: Supervisor
    link: FaultProxy
    folder: Path
    worker: Child
    told: list[str] = field(default_factory=list)
    restarts: list[str] = field(default_factory=list)
    now: timedelta = timedelta(0)
    chaos: Chaos = field(init=False)

    def strike(self, kind: StrikeKind, target: str, *, lasts_s: float = 0.0) -> None:
        self.strikes((kind, target, lasts_s))

    def strikes(self, *those: tuple[StrikeKind, str, float]) -> None:
        self.chaos = Chaos(
            strikes=[
                Strike(moment=timedelta(0), kind=kind, target=target, lasts=timedelta(seconds=lasts_s))
                for kind, target, lasts_s in those
            ],
            begins_at=BEGINS_AT,
            targets=Targets(
                children={"worker": self.worker},
                links={"link": self.link},
                servers=["postgresql"],
                start_server=self._start_server,
                supervisor=self.supervisor,
            ),
            journal=journal.Journal(self.folder),
            tell=self.told.append,
        )
        self.step()

    def _start_server(self, name: str) -> None:
        self.restarts.append(name)

    def start(self) -> int:
        return self.supervisor.start(self.worker, ready=lambda: "ready" in self.worker.log_path.read_text())

    def step(self, after_s: float = 0.0) -> None:
        self.now += timedelta(seconds=after_s)
        self.chaos.step(BEGINS_AT + self.now)

    def death(self) -> ChildDied:
        died: list[ChildDied] = []

        def seen() -> bool:
            died.extend(filter(None, [self.supervisor.poll()]))
            return bool(died)

        eventually(seen)
        return died[0]

    def took(self, died: ChildDied) -> bool:
        return self.chaos.took(died, now=BEGINS_AT + self.now)

    def struck(self) -> list[tuple[str, bool]]:
        return [(one.target, one.recovered_at is not None) for one in strikes_of(journal.read(self.folder))]


def eventually(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture
def staged(tmp_path: Path) -> Iterator[Staged]:
    with (
        RunFolder(tmp_path / "run", data=Data.DISCARD) as run,
        Supervisor(run) as supervisor,
        FaultProxy(("127.0.0.1", 9)) as link,
    ):
        worker = Child(name="worker", argv=[sys.executable, "-c", WORKER], log_path=run.log("worker"))
        yield Staged(supervisor, link, tmp_path / "journal", worker)


def test_a_killed_worker_is_started_again_after_its_time(staged: Staged) -> None:
    pid = staged.start()
    staged.strike(StrikeKind.KILL, "worker", lasts_s=3.0)
    died = staged.death()
    assert died.signal is signal.SIGKILL
    assert staged.took(died)
    staged.step(2.9)
    assert not staged.supervisor.pids
    staged.step(0.2)
    assert staged.supervisor.pids["worker"] != pid
    assert staged.chaos.is_over
    assert staged.struck() == [("worker", True)]


def test_a_worker_that_is_asked_to_end_is_away_from_its_end_on(staged: Staged) -> None:
    staged.start()
    staged.strike(StrikeKind.RESTART, "worker", lasts_s=3.0)
    died = staged.death()
    assert died.exit_code == 0
    staged.step(5.0)
    assert staged.took(died)
    staged.step(2.9)
    assert not staged.supervisor.pids
    staged.step(0.2)
    assert staged.supervisor.pids


def test_a_worker_that_does_not_end_is_killed_as_an_orchestrator_would(staged: Staged) -> None:
    pid = staged.start()
    psutil.Process(pid).suspend()  # it cannot hear
    staged.strike(StrikeKind.RESTART, "worker", lasts_s=1.0)
    staged.step(20.5)
    died = staged.death()
    assert died.signal is signal.SIGKILL
    assert staged.took(died)
    staged.step(1.5)
    assert staged.supervisor.pids["worker"] != pid


def test_a_stopped_worker_goes_on_after_its_time(staged: Staged) -> None:
    process = psutil.Process(staged.start())
    staged.strike(StrikeKind.FREEZE, "worker", lasts_s=3.0)
    eventually(lambda: process.status() == psutil.STATUS_STOPPED)
    staged.step(3.1)
    eventually(lambda: process.status() != psutil.STATUS_STOPPED)
    assert staged.chaos.is_over


def test_a_pool_that_lost_a_child_has_recovered_once_it_is_whole_again(staged: Staged) -> None:
    pid = staged.start()
    before = {each.pid for each in psutil.Process(pid).children()}
    staged.strike(StrikeKind.KILL_CHILD, "worker")

    def whole() -> bool:
        staged.step()
        return staged.chaos.is_over

    eventually(whole)
    after = {each.pid for each in psutil.Process(pid).children()}
    assert len(before & after) == 1
    assert staged.struck() == [("worker", True)]


def test_a_link_is_cut_and_mended(staged: Staged) -> None:
    staged.strike(StrikeKind.REFUSE, "link", lasts_s=2.0)
    assert not staged.chaos.is_over
    staged.step(2.1)
    assert staged.chaos.is_over
    assert staged.struck() == [("link", True)]


def test_a_server_is_started_again_and_the_store_may_be_silent_until_then(staged: Staged) -> None:
    server = Child(name="postgresql", argv=["sleep", "600"], log_path=staged.worker.log_path)
    staged.supervisor.start(server)
    staged.strike(StrikeKind.KILL, "postgresql", lasts_s=1.0)
    assert staged.took(staged.death())
    with staged.chaos.bearing_outages():
        raise StoreUnavailable("away", where="here")
    staged.step(1.1)
    assert staged.restarts == ["postgresql"]
    with pytest.raises(StoreUnavailable), staged.chaos.bearing_outages():
        raise StoreUnavailable("away", where="here")


def test_a_worker_that_could_not_start_while_a_server_was_away_is_started_again(staged: Staged) -> None:
    refused = Child(name="worker", argv=[sys.executable, "-c", "raise SystemExit(1)"], log_path=staged.worker.log_path)
    staged.strike(StrikeKind.STALL, "link", lasts_s=5.0)
    staged.supervisor.start(refused)
    assert staged.took(staged.death())
    staged.step(1.1)
    assert staged.supervisor.pids


def test_who_is_started_in_the_step_in_which_a_server_comes_back_may_find_it_away(staged: Staged) -> None:
    staged.start()
    staged.supervisor.start(Child(name="postgresql", argv=["sleep", "600"], log_path=staged.worker.log_path))
    staged.worker = replace(staged.worker, argv=[sys.executable, "-c", "raise SystemExit(1)"])
    staged.strikes(*((StrikeKind.KILL, target, 1.0) for target in ("worker", "postgresql")))
    assert [staged.took(staged.death()) for _ in range(2)] == [True, True]
    staged.step(1.1)
    assert staged.restarts == ["postgresql"]
    assert staged.took(staged.death())


def test_a_worker_that_gives_up_since_its_first_pool_lost_a_child_is_started_again(staged: Staged) -> None:
    gives_up = "import subprocess, sys; subprocess.run(['sleep', '600']); sys.exit(1)"
    young = Child(name="worker", argv=[sys.executable, "-c", gives_up], log_path=staged.worker.log_path)
    pid = staged.supervisor.start(young)
    eventually(lambda: bool(psutil.Process(pid).children()))
    staged.strike(StrikeKind.KILL_CHILD, "worker")
    assert staged.took(staged.death())
    staged.step(1.1)
    assert staged.supervisor.pids["worker"] != pid
    assert staged.struck() == [("worker", True)]


def test_a_grown_up_worker_is_not_to_die_of_a_lost_child(staged: Staged) -> None:
    gives_up = "import subprocess, sys; subprocess.run(['sleep', '600']); sys.exit(1)"
    pid = staged.supervisor.start(
        Child(name="worker", argv=[sys.executable, "-c", gives_up], log_path=staged.worker.log_path)
    )
    eventually(lambda: bool(psutil.Process(pid).children()))
    staged.now = timedelta(seconds=60)
    staged.strike(StrikeKind.KILL_CHILD, "worker")
    assert not staged.took(staged.death())


def test_a_grown_up_worker_is_not_to_give_up_while_a_server_is_away(staged: Staged) -> None:
    refused = Child(name="worker", argv=[sys.executable, "-c", "raise SystemExit(1)"], log_path=staged.worker.log_path)
    staged.now = timedelta(seconds=60)
    staged.strike(StrikeKind.STALL, "link", lasts_s=5.0)
    staged.supervisor.start(refused)
    assert not staged.took(staged.death())


@pytest.mark.parametrize("code", [0, 2])
def test_a_worker_that_ends_by_itself_is_not_chaoss_doing(staged: Staged, code: int) -> None:
    ended = Child(
        name="worker", argv=[sys.executable, "-c", f"raise SystemExit({code})"], log_path=staged.worker.log_path
    )
    staged.strike(StrikeKind.STALL, "link", lasts_s=5.0)
    staged.supervisor.start(ended)
    assert not staged.took(staged.death())


def test_a_worker_that_dies_in_peace_is_not_chaoss_doing(staged: Staged) -> None:
    pid = staged.start()
    staged.strike(StrikeKind.STALL, "link", lasts_s=5.0)
    psutil.Process(pid).kill()
    assert not staged.took(staged.death())


def test_who_is_not_there_is_not_struck_and_the_report_says_so(staged: Staged) -> None:
    staged.strike(StrikeKind.KILL, "worker", lasts_s=1.0)
    assert staged.chaos.is_over
    [one] = strikes_of(journal.read(staged.folder))
    assert one.effect == "not made: it is not there"

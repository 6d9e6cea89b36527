"""One compressed night, from an empty folder to the morning report."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from redis.exceptions import RedisError
from rich.console import Console
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from nightshift import footprint
from nightshift.books.generator import generate
from nightshift.books.migrate import migrate
from nightshift.books.runs import runs_to_submit
from nightshift.course import Span, scale_of, span_of, tempo_of
from nightshift.errors import NightError
from nightshift.ground import clear_broker, engine_of, first_line, own_database
from nightshift.live import NightConsole, Screen
from nightshift.people import PlannedClick, script, write_script
from nightshift.report.gather import Course, gather
from nightshift.report.publish import ensure_writable, publish
from nightshift.schedule import ZONE, lanes
from nightshift.settings import NightSettings, Plan
from nightshift.usage import Meter
from nightshift.world_process import NAME as WORLD
from nightshift.world_process import World, start_world
from slackwater import Slackwater, processes
from slackwater.errors import BrokerUnavailable, StoreUnavailable
from slackwater.local import ChildDied, Data, PostgreSQL, RunFolder, Servers, StopSignals, Supervisor, Valkey, masked

LEAD = timedelta(seconds=8)
"""How long before the night begins its processes are started: they stand ready at 01:30."""
LOOK_EVERY = timedelta(milliseconds=250)
PROBE_EVERY_S = 1.0
ANSWERS_WITHIN = timedelta(seconds=60)
APP, PEOPLE = "nightshift.app", "people"
SERVERS = frozenset({Valkey.name, PostgreSQL.name, WORLD})


@dataclass(frozen=True, kw_only=True)
class NightOptions:
    """What a person asks of a night; see the command line's help."""

    minutes: float
    seed: int
    plan: Plan
    report: Path | None
    folder: Path
    world_port: int
    broker_url: str | None
    store_url: str | None


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What a night's acts share once its servers run."""

    options: NightOptions
    folder: RunFolder
    stop: StopSignals
    supervisor: Supervisor
    console: Console
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


def run_night(options: NightOptions) -> bool:
    """Run one night, and report.

    Returns:
        True if all the morning report's checks hold.

    Raises:
        NightError: It cannot run, or had to end early.
        SlackwaterError: A server, a process or the folder failed.
    """
    console = NightConsole()
    with ExitStack() as stack:
        stop = stack.enter_context(StopSignals())
        folder = stack.enter_context(RunFolder(options.folder, now=datetime.now(UTC), data=Data.DISCARD))
        for line in folder.cleaned:
            console.print(line, soft_wrap=True)
        if options.report is not None:
            ensure_writable(options.report)
        supervisor = stack.enter_context(Supervisor(folder, interrupted=lambda: stop.requested))
        day = datetime.now(ZoneInfo(ZONE)).date()
        stage = Stage(
            options=options,
            folder=folder,
            stop=stop,
            supervisor=supervisor,
            console=console,
            meter=Meter(),
            name=secrets.token_hex(4),
            span=span_of(day),
        )
        with _ending_early(stage):
            return _run(stage, stack, day)


@contextmanager
def _ending_early(stage: Stage) -> Iterator[None]:
    """Say in one line why a night ends early, and end whoever works at once: its data are discarded anyway."""
    try:
        yield
    except BaseException as error:
        died = _died(stage)
        for name in set(stage.supervisor.pids) - SERVERS:
            with suppress(ProcessLookupError):
                os.kill(stage.supervisor.pids[name], signal.SIGKILL)
        unreachable = isinstance(error, (DBAPIError, RedisError, BrokerUnavailable, StoreUnavailable))
        if unreachable and died is not None:  # a server that died explains it best
            raise NightError(_stopped_by(died)) from error
        if isinstance(error, (DBAPIError, RedisError)):
            raise NightError(
                f"a server does not answer any more ({first_line(error)}); the night is stopped"
            ) from error
        raise


def _run(stage: Stage, stack: ExitStack, day: date) -> bool:
    options = stage.options
    stage.console.print(
        f"night of {day:%d %B %Y}, plan {options.plan}, seed {options.seed}, {options.minutes:g} minutes"
    )
    servers = Servers.start(
        stage.folder.path, stage.supervisor, broker_url=options.broker_url, store_url=options.store_url
    )
    _mark_given_servers(stage, stack)
    tell = stage.console.print if options.store_url is not None else None
    store_url = stack.enter_context(own_database(servers.store_url, stage.database, left_behind=tell))
    books = engine_of(store_url)
    stack.callback(books.dispose)
    clicks = _write_books(stage, books)
    world = start_world(stage.supervisor, stage.folder, seed=options.seed, day=day, port=options.world_port)
    env = _environment(stage, servers, world, store_url=store_url)
    sw = _application(env)
    stack.callback(_clear, stage, servers, sw)
    stack.callback(sw.store.close)
    sw.store.migrate()
    _start(stage, sw, env, clicks)
    _watch(stage, sw)
    _stop(stage, sw)
    course = Course(
        plan=options.plan,
        seed=options.seed,
        minutes=options.minutes,
        starts_at=stage.span.starts_at,
        ends_at=stage.span.ends_at,
        clicks=clicks,
        rate_limit=world.rate_limit,
        world_books=world.books,
        journal=_journal(stage),
    )
    with Session(books) as session:
        night = gather(sw, course, session=session, processes=stage.meter.uses())
    return publish(night, console=stage.console, report=options.report, folder=stage.folder.path)


def _mark_given_servers(stage: Stage, stack: ExitStack) -> None:
    """Write down what this night puts on given servers, after taking away what a killed one left there."""
    options, folder = stage.options, stage.folder.path

    def tell(line: str) -> None:
        stage.console.print(line, soft_wrap=True)

    footprint.clean(folder, store_url=options.store_url, broker_url=options.broker_url, tell=tell)
    if options.store_url is not None or options.broker_url is not None:
        prefix = stage.prefix
        footprint.Footprint(
            database=stage.database,
            prefix=prefix,
            queues=tuple(f"{prefix}{lane.name}" for lane in lanes(NightSettings())),
            store=None if options.store_url is None else masked(options.store_url),
            broker=None if options.broker_url is None else masked(options.broker_url),
        ).write(folder)
        stack.callback(footprint.forget, folder)


def _journal(stage: Stage) -> Path:
    return stage.folder.path / "journal"


def _write_books(stage: Stage, books: Engine) -> Sequence[PlannedClick]:
    """Fill the night's own database and folder, and draw the script of clicks."""
    _must_go_on(stage)
    for left in _journal(stage).glob("*.jsonl"):
        left.unlink()
    scale = scale_of(stage.options.minutes)
    migrate(books)
    with stage.console.status("writing the books and drawing receipts"):
        generate(books, scale, seed=stage.options.seed, now=stage.span.starts_at, folder=stage.folder.path)
    counts = (
        f"{scale.tenants} tenants, {scale.accounts} accounts, {scale.receipts} receipts, {scale.runs} approved runs"
    )
    stage.console.print(f"books: {counts}")
    with Session(books) as session:
        runs = runs_to_submit(session)
    span = stage.span
    return script(runs, seed=stage.options.seed, night=stage.name, starts_at=span.starts_at, ends_at=span.last_click_at)


def _environment(stage: Stage, servers: Servers, world: World, *, store_url: str) -> dict[str, str]:
    settings = NightSettings(
        plan=stage.options.plan,
        prefix=stage.prefix,
        world_url=world.url,
        world_token=world.token,
        folder=stage.folder.path,
        calls_per_second=world.rate_limit.calls_per_second,
    )
    tempo = tempo_of(stage.span, minutes=stage.options.minutes, run_start=datetime.now(UTC) + LEAD)
    return {
        **processes.environment(servers, base={}),
        **settings.environment(),
        "SLACKWATER_STORE_URL": store_url,
        "SLACKWATER_TEMPO": str(tempo),
        "SLACKWATER_PROBE_EVERY": str(PROBE_EVERY_S),
        "SLACKWATER_PRESENCE_EVERY": str(PROBE_EVERY_S),
        "SLACKWATER_SETTLE_EVERY": str(PROBE_EVERY_S),
    }


def _application(env: Mapping[str, str]) -> Slackwater:
    """Load the application as its processes will: from the environment, which is read when it is imported."""
    os.environ.update(env)
    from nightshift.app import sw

    sw.check()
    return sw


def _start(stage: Stage, sw: Slackwater, env: Mapping[str, str], clicks: Sequence[PlannedClick]) -> None:
    _must_go_on(stage)
    path = stage.folder.path / "clicks.json"
    write_script(clicks, path)
    logs = stage.folder.logs
    children = [
        processes.balancer(APP, env=env, logs=logs),
        *processes.workers(APP, sw.lanes, env=env, logs=logs),
        processes.python(PEOPLE, ["nightshift", "people", f"--script={path}"], env=env, logs=logs),
    ]
    for child in children:
        stage.supervisor.start(child)
    stage.console.print(
        f"{len(sw.lanes)} lanes, balancer, outside world and people run; logs in {logs}", soft_wrap=True
    )


def _watch(stage: Stage, sw: Slackwater) -> None:
    """Show the night until it is over and everybody who clicked has an answer."""
    ends = sw.settings.tempo.run_at(stage.span.ends_at)
    with Screen(stage.console, sw, stage.span) as screen:
        while (now := sw.clock.run()) < ends or (PEOPLE in stage.supervisor.pids and now < ends + ANSWERS_WITHIN):
            _must_go_on(stage)
            stage.meter.sample(stage.supervisor.pids)
            screen.show()
            stage.stop.wait(LOOK_EVERY)


def _must_go_on(stage: Stage) -> None:
    if stage.stop.requested:
        raise NightError(f"stopped by {stage.stop.received[0].name} before the night was over; nothing is left running")
    if (died := _died(stage)) is not None:
        raise NightError(_stopped_by(died))


def _died(stage: Stage) -> ChildDied | None:
    """Return a child that died; people may go home when they have clicked."""
    while (died := stage.supervisor.poll()) is not None:
        if died.name != PEOPLE or died.exit_code != 0:
            return died
    return None


def _stopped_by(died: ChildDied) -> str:
    return f"{died.sentence}; the night is stopped, its log is {died.log_path}"


def _stop(stage: Stage, sw: Slackwater) -> None:
    """End who clicks, then workers, which finish what they have begun; the servers stay for the report.

    The balancer ends last, so that it settles the occurrences' last jobs; nothing is due for hours after a night.
    """
    stage.console.print("the night is over; the workers finish what they have begun")
    stage.supervisor.stop(PEOPLE)
    stage.supervisor.stop(*(f"worker-{lane}" for lane in sw.lanes))
    stage.stop.wait(2 * timedelta(seconds=PROBE_EVERY_S))
    stage.supervisor.stop("balancer")


def _clear(stage: Stage, servers: Servers, sw: Slackwater) -> None:
    """Leave nothing on servers that are not ours."""
    if stage.options.broker_url is None:
        return
    queues = list(sw.queues.values())
    for url in dict.fromkeys((servers.broker_url, servers.backend_url)):
        clear_broker(url, prefix=stage.prefix, queues=queues, left_behind=stage.console.print)

"""One compressed night, from an empty folder to the morning report."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from nightshift import footprint
from nightshift.alarm_note import FULL, AlarmNote, no_room
from nightshift.books.generator import generate
from nightshift.books.migrate import migrate
from nightshift.books.runs import runs_to_submit
from nightshift.chaos.chaos import Chaos
from nightshift.chaos.links import open_links
from nightshift.chaos.staging import stage_chaos, wait_until_settled
from nightshift.connecting import connect_accounts
from nightshift.course import scale_of, span_of, tempo_of
from nightshift.errors import NightError
from nightshift.ground import clear_broker, create_database, engine_of, own_database
from nightshift.live import NightConsole, Screen
from nightshift.people import PlannedClick, script, write_script
from nightshift.report.gather import Course, gather
from nightshift.report.publish import ensure_writable, publish
from nightshift.schedule import ZONE, lanes
from nightshift.settings import NightSettings
from nightshift.stage import JOURNAL, PEOPLE, NightOptions, Stage, ending_early, must_go_on
from nightshift.usage import Meter
from nightshift.world.faults import FaultScriptError, read_faults
from nightshift.world_process import World, revive_world, start_world
from slackwater import Settings, Slackwater, processes
from slackwater.local import Child, ChildDied, Data, RunFolder, ServerPlan, Servers, StopSignals, Supervisor, masked

LEAD = timedelta(seconds=8)
"""How long before the night begins its processes are started: they stand ready at 01:30."""
LOOK_EVERY = timedelta(milliseconds=250)
PROBE_EVERY_S = 1.0
EACH_SECOND = ("SLACKWATER_PROBE_EVERY", "SLACKWATER_PRESENCE_EVERY", "SLACKWATER_SETTLE_EVERY")
"""Settings that a compressed night has its own defaults for."""
TIMEOUT_AMONG_FAULTS_S = 10.0
"""A call that hangs for the usual minute hangs for a quarter of a short night."""
ANSWERS_WITHIN = timedelta(seconds=60)
APP = "nightshift.app"


def run_night(options: NightOptions) -> bool:
    """Run one night, and report.

    Returns:
        True if all the morning report's checks hold.

    Raises:
        NightError: It cannot run, or had to end early.
        SlackwaterError: A server, a process or the folder failed.
    """
    console = NightConsole()
    settings = NightSettings.from_environment(os.environ)
    Settings.from_environment(os.environ)  # refused before anything is started
    _check_faults(options.faults)
    with _told_of_a_full_disk(options.folder), ExitStack() as stack:
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
            settings=settings,
            meter=Meter(),
            name=secrets.token_hex(4),
            span=span_of(day),
        )
        with ending_early(stage):
            return _run(stage, stack, day)


def _check_faults(script_of_faults: Path | None) -> None:
    if script_of_faults is not None:
        try:
            read_faults(script_of_faults)
        except FaultScriptError as error:
            raise NightError(str(error)) from error


@contextmanager
def _told_of_a_full_disk(folder: Path) -> Iterator[None]:
    """Put a full disk into one line where there is no stage yet, or none any more."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise NightError(no_room(folder.resolve())) from error


def _run(stage: Stage, stack: ExitStack, day: date) -> bool:
    options = stage.options
    stage.console.print(
        f"night of {day:%d %B %Y}, plan {options.plan}, seed {options.seed}, "
        f"{options.minutes:g} {'minute' if options.minutes == 1 else 'minutes'}"
    )
    if (unread := processes.unread_backend(os.environ)) is not None:
        stage.console.print(f"note: {unread}", soft_wrap=True, markup=False)
    plan = ServerPlan(stage.folder.path, stage.supervisor, broker_url=options.broker_url, store_url=options.store_url)
    servers = plan.start()
    _mark_given_servers(stage, stack)
    store_url = stack.enter_context(_database(stage, servers))
    books = engine_of(store_url)
    stack.callback(books.dispose)
    clicks = _write_books(stage, books)
    world = start_world(
        stage.supervisor,
        stage.folder,
        seed=options.seed,
        day=day,
        port=options.world_port,
        faults=options.faults,
    )
    connect_accounts(books, world)
    env = _environment(stage, servers, world, store_url=store_url)
    links = stack.enter_context(open_links(env, sockets=stage.folder.sockets)) if options.chaos else None
    sw = _application(env)
    stack.callback(_clear, stage, servers, sw)
    stack.callback(sw.store.close)
    sw.store.migrate()
    sw.adopt_schedule(stage.span.starts_at)  # however late its balancer is
    # This process itself asks directly: what it shows and reports is not to suffer.
    children = _start(stage, sw, {**env, **(links.environment if links else {})}, clicks)
    chaos = stage_chaos(stage, sw, children=children, servers=plan, links=links)

    def go_on() -> None:
        must_go_on(stage, or_else=lambda died: _survives(died, stage, sw, world=world, chaos=chaos))

    _watch(stage, sw, chaos=chaos, go_on=go_on)
    if options.chaos:
        wait_until_settled(stage, sw, clicks, chaos=chaos, go_on=go_on)
    _stop(stage, sw)
    must_go_on(stage, before="its report was written")
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
    books.dispose()  # its server may have been another since
    with Session(books) as session:
        night = gather(sw, course, session=session, processes=stage.meter.uses())
    must_go_on(stage, before="its report was written")
    return publish(night, console=stage.console, report=options.report, folder=stage.folder.path)


def _database(stage: Stage, servers: Servers) -> AbstractContextManager[str]:
    """Make the night's own database; on a server of ours it goes with the server's data."""
    if stage.options.store_url is None:
        return nullcontext(create_database(servers.store_url, stage.database))
    return own_database(servers.store_url, stage.database, left_behind=stage.console.print)


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
            queues=_queues(prefix, [lane.name for lane in lanes(NightSettings())]),
            store=None if options.store_url is None else masked(options.store_url),
            broker=None if options.broker_url is None else masked(options.broker_url),
        ).write(folder)
        stack.callback(footprint.forget, folder)


def _journal(stage: Stage) -> Path:
    return stage.folder.path / JOURNAL


def _write_books(stage: Stage, books: Engine) -> Sequence[PlannedClick]:
    """Fill the night's own database and folder, and draw the script of clicks."""
    must_go_on(stage)
    for left in _journal(stage).glob("*.jsonl"):
        left.unlink()
    AlarmNote(_journal(stage)).prepare()
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
    settings = replace(
        stage.settings,
        plan=stage.options.plan,
        prefix=stage.prefix,
        world_url=world.url,
        credentials=world.credentials,
        folder=stage.folder.path,
        calls_per_second=world.rate_limit.calls_per_second,
        ends_at=stage.span.ends_at,
    )
    if stage.options.faults is not None and "NIGHTSHIFT_CALL_TIMEOUT_S" not in os.environ:
        settings = replace(settings, call_timeout_s=TIMEOUT_AMONG_FAULTS_S)
    tempo = tempo_of(stage.span, minutes=stage.options.minutes, run_start=datetime.now(UTC) + LEAD)
    return {
        **processes.environment(servers, base={}),
        **settings.environment(),
        "SLACKWATER_STORE_URL": store_url,
        "SLACKWATER_TEMPO": str(tempo),
        **{name: os.environ.get(name, str(PROBE_EVERY_S)) for name in EACH_SECOND},
    }


def _application(env: Mapping[str, str]) -> Slackwater:
    """Load the application as its processes will: from the environment, which is read when it is imported."""
    os.environ.update(env)
    from nightshift.app import sw

    sw.check()
    return sw


def _start(stage: Stage, sw: Slackwater, env: Mapping[str, str], clicks: Sequence[PlannedClick]) -> Mapping[str, Child]:
    """Start the night's processes; return those that chaos may strike, by name."""
    must_go_on(stage)
    path = stage.folder.path / "clicks.json"
    write_script(clicks, path)
    logs = stage.folder.logs
    children = [
        processes.balancer(APP, env=env, logs=logs),
        *processes.workers(APP, sw.lanes, env=env, logs=logs),
    ]
    people = processes.python(PEOPLE, ["nightshift", "people", f"--script={path}"], env=env, logs=logs)
    for child in (*children, people):
        stage.supervisor.start(child)
    stage.console.print(
        f"{len(sw.lanes)} lanes, balancer, outside world and people run; logs in {logs}", soft_wrap=True
    )
    return {child.name: child for child in children}


def _survives(died: ChildDied, stage: Stage, sw: Slackwater, *, world: World, chaos: Chaos) -> bool:
    """Tell whether a night goes on though a process died.

    Chaos brings back whom it struck; an outside world that has died of a script of faults is started again, as a person
    on call would.
    """

    def tell(line: str) -> None:
        stage.console.print(line, soft_wrap=True)

    return chaos.took(died, now=sw.clock.run()) or revive_world(died, world, stage.supervisor, tell=tell)


def _watch(stage: Stage, sw: Slackwater, *, chaos: Chaos, go_on: Callable[[], None]) -> None:
    """Show the night until it is over and everybody who clicked has an answer."""
    ends = sw.settings.tempo.run_at(stage.span.ends_at)
    with Screen(stage.console, sw, stage.span) as screen:
        while (now := sw.clock.run()) < ends or (PEOPLE in stage.supervisor.pids and now < ends + ANSWERS_WITHIN):
            go_on()
            chaos.step(sw.clock.run())
            stage.meter.sample(stage.supervisor.pids)
            with chaos.bearing_outages():
                screen.show()
            stage.stop.wait(LOOK_EVERY)


def _stop(stage: Stage, sw: Slackwater) -> None:
    """End who clicks, then workers, which finish what they have begun; the servers stay for the report.

    The balancer ends last, so that it settles the occurrences' last jobs; nothing is due after the night's end.
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
    queues = _queues(stage.prefix, sw.lanes)
    for url in dict.fromkeys((servers.broker_url, servers.backend_url)):
        clear_broker(url, prefix=stage.prefix, queues=queues, left_behind=stage.console.print)


def _queues(prefix: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the queues of a night: its lanes', and the one of dead letters."""
    return tuple(f"{prefix}{name}" for name in (*names, "dead_letters"))

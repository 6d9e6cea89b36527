"""`slackwater up`: servers, balancer and a worker a lane, all on this machine."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from slackwater import processes
from slackwater.cli.main import load, say_notes
from slackwater.errors import ConfigurationError, LocalServiceError
from slackwater.local import RunFolder, ServerPlan, Servers, StopSignals, Supervisor

ADDRESSES = "addresses.sh"
LOOK_EVERY = timedelta(milliseconds=300)


@click.command(name="up")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path(".slackwater"),
    show_default=True,
    help="State, logs and sockets of this machine's run.",
)
@click.option("--broker", envvar="CELERY_BROKER_URL", help="Broker URL; without one a Valkey is started.")
@click.option("--store", envvar="SLACKWATER_STORE_URL", help="PostgreSQL URL; without one a PostgreSQL is started.")
@click.pass_context
def command(context: click.Context, folder: Path, *, broker: str | None, store: str | None) -> None:
    """Run everything on this machine until Ctrl-C: servers from wheels, the balancer, a worker for each lane.

    The application reads CELERY_BROKER_URL, CELERY_RESULT_BACKEND and SLACKWATER_STORE_URL, which are set for it before
    it is loaded; the servers start once it has been checked. Data are kept in the folder for the next run. As root,
    PostgreSQL's are outside, under /var/lib/slackwater/data (the folder's outside.json names them).
    """
    name = context.obj
    if not isinstance(name, str):
        raise ConfigurationError("`up` loads the application itself; run it as slackwater -A PACKAGE.MODULE up")
    with ExitStack() as stack, StopSignals() as stop, RunFolder(folder, now=datetime.now(UTC)) as run:
        for line in run.cleaned:
            click.echo(line)
        with Supervisor(run, interrupted=lambda: stop.requested) as supervisor:
            if (unread := processes.unread_backend(os.environ)) is not None:
                click.echo(f"slackwater: note: {unread}", err=True)
            with _leaving_nothing_that_never_came_up(run):
                plan = ServerPlan(run.path, supervisor, broker_url=broker, store_url=store)
                _publish(plan.addresses())  # read by the application when it is loaded; refused before a server starts
                sw = load(context)
                sw.check()
                say_notes(sw)
                env = _publish(plan.start())
                sw.store.migrate()
                sw.adopt_schedule()
                supervisor.start(processes.balancer(name, env=env, logs=run.logs))
                for child in processes.workers(name, sw.lanes, env=env, logs=run.logs):
                    supervisor.start(child)
            stack.callback((run.path / ADDRESSES).unlink, missing_ok=True)
            _write_addresses(run.path / ADDRESSES, env)
            lanes = f"{len(sw.lanes)} {'lane' if len(sw.lanes) == 1 else 'lanes'} ({', '.join(sw.lanes)})"
            click.echo(f"up: {lanes}; logs in {run.logs}; Ctrl-C stops all")
            click.echo(f"in a second terminal: . {run.path / ADDRESSES} && slackwater -A {name} status")
            while not stop.wait(LOOK_EVERY):
                if (died := supervisor.poll()) is not None:
                    raise LocalServiceError(f"{died.sentence}; everything is stopped, its log is {died.log_path}")
    click.echo("down: everything is stopped")


@contextmanager
def _leaving_nothing_that_never_came_up(run: RunFolder) -> Iterator[None]:
    """Have the data of a run removed that fails before it is up, unless an earlier run left them."""
    (run.path / ADDRESSES).unlink(missing_ok=True)  # of a run that was killed
    try:
        yield
    except BaseException:
        if run.is_new:
            run.discard_data()
        raise


def _publish(servers: Servers) -> dict[str, str]:
    """Put the addresses where the application and its processes read them."""
    env = processes.environment(servers, base={})
    os.environ.update(env)
    return env


def _write_addresses(path: Path, env: Mapping[str, str]) -> None:
    """Write the addresses for a second terminal; they hold passwords, so for this user alone."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.writelines(f"export {name}={shlex.quote(value)}\n" for name, value in env.items())

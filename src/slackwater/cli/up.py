"""`slackwater up`: servers, balancer and a worker a lane, all on this machine."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from slackwater import processes
from slackwater.cli.main import load, say_notes
from slackwater.errors import ConfigurationError, LocalServiceError
from slackwater.local import RunFolder, Servers, StopSignals, Supervisor

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

    The application reads CELERY_BROKER_URL, CELERY_RESULT_BACKEND and SLACKWATER_STORE_URL, which are set for it.
    """
    name = context.obj
    if not isinstance(name, str):
        raise ConfigurationError("`up` loads the application itself; run it as slackwater -A PACKAGE.MODULE up")
    with StopSignals() as stop, RunFolder(folder, now=datetime.now(UTC)) as run:
        for line in run.cleaned:
            click.echo(line)
        with Supervisor(run, interrupted=lambda: stop.requested) as supervisor:
            if (unread := processes.unread_backend(os.environ)) is not None:
                click.echo(f"slackwater: note: {unread}", err=True)
            env = _servers(run, supervisor, broker=broker, store=store)
            sw = load(context)
            sw.check()
            say_notes(sw)
            sw.store.migrate()
            sw.adopt_schedule()
            supervisor.start(processes.balancer(name, env=env, logs=run.logs))
            for child in processes.workers(name, sw.lanes, env=env, logs=run.logs):
                supervisor.start(child)
            lanes = f"{len(sw.lanes)} {'lane' if len(sw.lanes) == 1 else 'lanes'} ({', '.join(sw.lanes)})"
            click.echo(f"up: {lanes}; logs in {run.logs}; Ctrl-C stops all")
            click.echo(f"in a second terminal: . {run.path / ADDRESSES} && slackwater -A {name} status")
            while not stop.wait(LOOK_EVERY):
                if (died := supervisor.poll()) is not None:
                    raise LocalServiceError(f"{died.sentence}; everything is stopped, its log is {died.log_path}")
    click.echo("down: everything is stopped")


def _servers(run: RunFolder, supervisor: Supervisor, *, broker: str | None, store: str | None) -> dict[str, str]:
    """Start what has no URL, and put all URLs where the application reads them when it is loaded."""
    servers = Servers.start(run.path, supervisor, broker_url=broker, store_url=store)
    env = processes.environment(servers, base={})
    os.environ.update(env)
    _write_addresses(run.path / ADDRESSES, env)
    return env


def _write_addresses(path: Path, env: Mapping[str, str]) -> None:
    """Write the addresses for a second terminal; they hold passwords, so for this user alone."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.writelines(f"export {name}={shlex.quote(value)}\n" for name, value in env.items())

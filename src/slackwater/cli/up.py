"""`slackwater up`: servers, balancer and a worker a lane, all on this machine."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from threading import Event
from typing import Any

import click

from slackwater import processes
from slackwater.cli.main import load
from slackwater.errors import ConfigurationError, LocalServiceError
from slackwater.local import RunFolder, Servers, Supervisor

POLL_S = 0.3


@click.command(name="up")
@click.option("--folder", type=click.Path(path_type=Path), default=Path(".slackwater"), show_default=True,
              help="State, logs and sockets of this machine's run.")
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
    stop = Event()

    def ask_to_stop(*_: Any) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ask_to_stop)
    with RunFolder(folder) as run, Supervisor(run) as supervisor:
        for line in run.cleaned:
            click.echo(line)
        servers = Servers.start(run.path, supervisor, broker_url=broker, store_url=store)
        env = processes.environment(servers, base=os.environ)
        os.environ.update(env)
        sw = load(context)
        sw.check()
        sw.store.migrate()
        supervisor.start(processes.balancer(name, env=env, logs=run.logs))
        for child in processes.workers(name, sw.lanes, env=env, logs=run.logs):
            supervisor.start(child)
        click.echo(f"up: {len(sw.lanes)} lanes ({', '.join(sw.lanes)}); logs in {run.logs}; Ctrl-C stops all")
        while not stop.wait(POLL_S):
            if (died := supervisor.poll()) is not None:
                raise LocalServiceError(f"{died}; everything is stopped, its log is in {run.logs}")
    click.echo("down: everything is stopped")

"""The command line: `slackwater -A proj worker LANE...`, `balancer`, `status`, `up`, `migrate`.

Also a plugin of Celery's own: `celery -A proj slackwater ...`.
"""

from __future__ import annotations

import io
import sys
from importlib import import_module
from typing import IO, Any

import click
from celery import Celery

from slackwater.adapters.memory import MemoryStore
from slackwater.app import Slackwater
from slackwater.cli.application import find_application
from slackwater.cli.logs import configure_logs
from slackwater.errors import ConfigurationError, SlackwaterError

EXIT_BAD_INPUT = 2
EXIT_FAILED = 1
EXIT_INTERRUPTED = 130

COMMANDS = ("balancer", "dead", "migrate", "status", "sweepers", "up", "worker")


class Refused(click.ClickException):
    """An error of ours on the command line: one clear line a finding, never a traceback."""

    def __init__(self, error: SlackwaterError) -> None:
        super().__init__(str(error))
        bad_input = isinstance(error, ConfigurationError)
        self.exit_code = EXIT_BAD_INPUT if bad_input else EXIT_FAILED  # type: ignore[misc] # click's own way
        self.lines = error.findings if isinstance(error, ConfigurationError) else (self.message,)

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the lines."""
        for line in self.lines:
            click.echo(f"slackwater: {line}", err=file is None, file=file)


class Commands(click.Group):
    """Loads a command's module when it is asked for, by whichever command line."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return one; None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"slackwater.cli.{cmd_name}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except SlackwaterError as error:
            raise Refused(error) from error


EXIT_CODES = """\b
Exit codes:
  0    done
  1    something failed, or the store does not answer
  2    bad input, or a setting that conflicts
  130  interrupted (Ctrl-C) before its end"""


@click.group(
    "slackwater",
    cls=Commands,
    help="Slackwater: a Celery batch scheduler that is really a load balancer.",
    epilog=EXIT_CODES,
)
@click.option("-A", "--app", "name", envvar="CELERY_APP", help="Where the Celery application is, like 'books.app'.")
@click.option("-v", "--verbose", is_flag=True, help="Log what is done, not only what is odd.")
@click.pass_context
def cli(context: click.Context, name: str | None, *, verbose: bool) -> None:
    """Collect what all commands need; the application is loaded by the command, so that `--help` needs none."""
    parent = context.parent.obj if context.parent is not None else None
    given = getattr(parent, "app", None)  # Celery's own command line has loaded it already
    context.obj = given if isinstance(given, Celery) and name is None else name
    configure_logs(verbose=verbose)


def load(context: click.Context) -> Slackwater:
    """Return the Slackwater that the command line names.

    Raises:
        ConfigurationError: No application is named, found, or has one.
    """
    named: Celery | str | None = context.obj
    if isinstance(named, Celery):
        return Slackwater.of(named)
    if not named:
        raise ConfigurationError("no application named; pass -A PACKAGE.MODULE or set CELERY_APP")
    return Slackwater.of(find_application(named))


def say_notes(sw: Slackwater) -> None:
    """Tell on standard error what is allowed and may still surprise."""
    for line in sw.notes():
        click.echo(f"slackwater: note: {line}", err=True)


def load_shared(context: click.Context) -> Slackwater:
    """Return the Slackwater that the command line names, for a process that shares its store with others.

    Raises:
        ConfigurationError: As `load`; or its store lives in this process alone, where every other would see nothing.
    """
    sw = load(context)
    if isinstance(sw.store, MemoryStore):
        raise ConfigurationError(
            "store memory:// lives in one process, so workers, balancer and status would not see each other; "
            "set SLACKWATER_STORE_URL to postgresql://..., or run `slackwater up`, which starts one"
        )
    return sw


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):  # a terminal without our signs and umlauts shows others in their place
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        sys.exit(cli.main(prog_name="slackwater", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(EXIT_INTERRUPTED)

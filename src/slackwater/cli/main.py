"""The command line: `slackwater -A proj worker LANE...`, `balancer`, `status`, `up`, `migrate`.

Also a plugin of Celery's own: `celery -A proj slackwater ...`.
"""

from __future__ import annotations

import sys

import click
from celery import Celery
from celery.app.utils import find_app

from slackwater.app import Slackwater
from slackwater.cli.logs import configure_logs
from slackwater.errors import ConfigurationError, SlackwaterError

EXIT_BAD_INPUT = 2
EXIT_FAILED = 1


@click.group(help="Slackwater: a Celery batch scheduler that is really a load balancer.")
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
    sys.path.insert(0, "")
    try:
        found = find_app(named)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"application {named!r}: {error}; pass -A PACKAGE.MODULE of the Celery application"
        ) from error
    if not isinstance(found, Celery):
        raise ConfigurationError(f"{named!r} holds no Celery application; pass -A PACKAGE.MODULE:NAME")
    return Slackwater.of(found)


def main() -> None:
    """Run the command line; an error of ours is one clear line a finding, never a traceback."""
    from slackwater.cli import balancer, migrate, status, up, worker  # late: they register themselves

    for module in (balancer, migrate, status, up, worker):
        cli.add_command(module.command)
    try:
        sys.exit(cli.main(prog_name="slackwater", standalone_mode=False) or 0)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_BAD_INPUT)
    except click.Abort:
        sys.exit(130)
    except SlackwaterError as error:
        for line in getattr(error, "findings", None) or [str(error)]:
            click.echo(f"slackwater: {line}", err=True)
        sys.exit(EXIT_BAD_INPUT if isinstance(error, ConfigurationError) else EXIT_FAILED)

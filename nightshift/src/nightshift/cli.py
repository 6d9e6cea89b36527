"""The command line of nightshift."""

from __future__ import annotations

import io
import math
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

import click

from nightshift.errors import NightError
from nightshift.settings import Plan

EXIT_NOT_WHOLE = 1
EXIT_CANNOT_RUN = 2


class Minutes(click.FloatRange):
    """A number of minutes; not a number (nan) is not one, though it compares as inside any range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it, or fail as click does."""
        read = super().convert(value, param, ctx)
        if math.isnan(read):
            self.fail(f"{value!r} is not a number of minutes", param, ctx)
        return read


@click.group(help="The night of an accounting product, on Slackwater.")
def cli() -> None:
    """Group the commands."""


@cli.command("night")
@click.option(
    "--minutes",
    type=Minutes(0.5, 600),
    default=4.0,
    show_default=True,
    help="Real time that the night (01:30 to 08:00) takes; volumes are sized to it.",
)
@click.option("--seed", type=int, default=7, show_default=True, help="Decides books, clicks and the outside world.")
@click.option(
    "--plan",
    type=click.Choice([str(plan) for plan in Plan]),
    default=str(Plan.SHIFTED),
    show_default=True,
    help="shifted: the sweep stands in a quiet slot; collide: it stands in the bank window.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    show_default="morning-report.json in the folder",
    help="Write the morning report here as JSON, page and picture beside it as .html and .svg.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".nightshift"),
    show_default=True,
    help="State, logs and receipts; one night at a time.",
)
@click.option(
    "--world-port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default="a free one",
    help="Port of the outside world on 127.0.0.1.",
)
@click.option(
    "--faults",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    default=None,
    help="Script of faults for the outside world, JSON; see nightshift.world.faults.",
)
@click.option(
    "--chaos",
    is_flag=True,
    help="Kill, stop and restart workers, balancer and own servers, break connections: at moments drawn from the seed.",
)
@click.option("--broker", "broker_url", envvar="CELERY_BROKER_URL", help="Broker URL; without one a Valkey is started.")
@click.option(
    "--store", "store_url", envvar="SLACKWATER_STORE_URL", help="PostgreSQL URL; without one a PostgreSQL is started."
)
def night(plan: str, **options: Any) -> None:
    """Run one compressed night for real, show it live, and print the morning report.

    Starts Valkey and PostgreSQL (unless URLs are given), the outside world, the balancer and a worker for each lane;
    stops everything at the end. Exit codes: 0 the report's checks all hold, 1 one does not, 2 the night could not run
    or was stopped.
    """
    from nightshift.night import run_night  # late: --help answers at once
    from nightshift.stage import NightOptions

    ok = run_night(NightOptions(plan=Plan(plan), **options))
    sys.exit(0 if ok else EXIT_NOT_WHOLE)


@cli.command("people", hidden=True)
@click.option("--script", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=True)
def people(script: Path) -> None:
    """Click as a script says (started by the night itself)."""
    from nightshift.people import run_people

    run_people(script)


def main() -> None:
    """Run the command line; an expected error is one clear line, any other a traceback, and never exit code 1."""
    for stream in (sys.stdout, sys.stderr):  # a terminal without our signs and umlauts shows others in their place
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    signal.signal(signal.SIGTERM, _interrupted)  # until the night itself listens; loading its parts takes seconds
    try:
        _run()
    except KeyboardInterrupt:
        click.echo("nightshift: stopped before the night had begun; nothing is left running", err=True)
        sys.exit(EXIT_CANNOT_RUN)
    except Exception:  # noqa: BLE001 - Python's own exit code for it is 1, which means a check that does not hold
        traceback.print_exc()
        sys.exit(EXIT_CANNOT_RUN)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):  # all is done: one more changes nothing but the exit code
            signal.signal(number, signal.SIG_IGN)


def _interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


def _run() -> None:
    from slackwater.errors import SlackwaterError

    try:
        cli.main(prog_name="nightshift", standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(EXIT_CANNOT_RUN)
    except click.ClickException as error:
        click.echo(f"nightshift: {error.format_message().rstrip('.')}; see nightshift night --help", err=True)
        sys.exit(EXIT_CANNOT_RUN)
    except click.Abort:
        raise KeyboardInterrupt from None
    except (NightError, SlackwaterError) as error:
        click.echo(f"nightshift: {error}", err=True)
        sys.exit(EXIT_CANNOT_RUN)

"""The command line of the world: `python -m nightshift.world`."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Any

import click

from nightshift.errors import NightError
from nightshift.tokens import Registration
from nightshift.world.chance import LognormalRule
from nightshift.world.faults import read_faults
from nightshift.world.limiter import RateLimit
from nightshift.world.script import WorldRules

_ABOVE_ZERO = click.FloatRange(min=0, min_open=True)
_NOT_NEGATIVE = click.FloatRange(min=0)
_SHARE = click.FloatRange(min=0, max=1)


class StartError(click.ClickException):
    """The world cannot run; one line on stderr, exit code 2."""

    exit_code = 2


@click.command(context_settings={"show_default": True})
@click.option("--port", type=click.IntRange(0, 65535), help="Port on 127.0.0.1; 0 picks a free one.")
@click.option("--fd", type=click.IntRange(0), help="Use this inherited, bound socket instead of a port.")
@click.option(
    "--books",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="SQLite file of every call and filing. Books of the same seed are continued.",
)
@click.option("--seed", type=int, required=True, help="Decides every latency, fault and bank statement.")
@click.option(
    "--registration",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of the application that may call: its id, and its public key.",
)
@click.option(
    "--today",
    type=click.DateTime(["%Y-%m-%d"]),
    default=None,
    show_default="the date in UTC",
    help="The world's date: newest booking day of the statements.",
)
@click.option("--calls-per-second", type=_ABOVE_ZERO, default=12.0, help="Sustained rate that the aggregator lets in.")
@click.option("--burst", type=click.IntRange(1), default=6, help="Calls let in at one instant after a pause.")
@click.option("--aggregator-median-s", type=_ABOVE_ZERO, default=2.5, help="Median latency of the aggregator, seconds.")
@click.option("--aggregator-sigma", type=_NOT_NEGATIVE, default=0.7, help="Spread of it (sigma of the logarithm).")
@click.option("--gateway-median-s", type=_ABOVE_ZERO, default=0.6, help="Median latency of the filing gateway.")
@click.option("--gateway-sigma", type=_NOT_NEGATIVE, default=0.5, help="Spread of it (sigma of the logarithm).")
@click.option("--throttled-ratio", type=_SHARE, default=0.01, help="Share of granted aggregator calls answered 429.")
@click.option("--failed-ratio", type=_SHARE, default=0.01, help="Share of granted aggregator calls answered 5xx.")
@click.option("--page-size", type=click.IntRange(1), default=50, help="Transactions on one page.")
@click.option("--key-lifetime-s", type=_ABOVE_ZERO, help="How long a continuation key is known. Default: always.")
@click.option("--consents-required", is_flag=True, help="Answer only for accounts of an authorized session.")
@click.option(
    "--faults",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Script of faults, JSON; see nightshift.world.faults. Default: none but the two shares above.",
)
def main(**options: Any) -> None:
    """Run the outside world: a bank aggregator and a filing gateway on loopback.

    Latencies, faults and statements are a function of the seed, the account (or key), the endpoint and how
    often that was asked before, never of the order of calls. When it serves, it prints one line of JSON with
    its URL. SIGTERM or Ctrl-C end it; calls that are under way then stay open in the books.

    Exit codes: 0 after a signal; 2 if it cannot listen, or cannot write its books (also later on).
    """
    # Late, so that --help and a wrong option answer at once: the web framework takes most of a second.
    from nightshift.world.books import BooksError
    from nightshift.world.server import SocketError, listen, serve

    if (options["port"] is None) == (options["fd"] is None):
        raise StartError("give either --port or --fd")
    try:
        rules = _rules(options)
        with listen(port=options["port"], fd=options["fd"]) as listener:
            serve(rules, options["books"], listener=listener, registration=Registration.read(options["registration"]))
    except (SocketError, BooksError, NightError, ValueError) as error:
        raise StartError(str(error)) from error
    sys.stdout.flush()


def _rules(options: dict[str, Any]) -> WorldRules:
    today = options["today"]
    return WorldRules(
        seed=options["seed"],
        today=dt.datetime.now(dt.UTC).date() if today is None else today.date(),
        rate_limit=RateLimit(calls_per_second=options["calls_per_second"], burst=options["burst"]),
        aggregator=LognormalRule(median=options["aggregator_median_s"], sigma=options["aggregator_sigma"]),
        gateway=LognormalRule(median=options["gateway_median_s"], sigma=options["gateway_sigma"]),
        throttled_ratio=options["throttled_ratio"],
        failed_ratio=options["failed_ratio"],
        page_size=options["page_size"],
        key_lifetime_s=options["key_lifetime_s"],
        consents_required=options["consents_required"],
        faults=() if options["faults"] is None else read_faults(options["faults"]),
    )

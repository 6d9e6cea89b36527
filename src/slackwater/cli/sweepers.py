"""All sweepers of an application, put together for the balancer; `slackwater sweepers` shows what they did."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import click
from rich.console import Console

from slackwater.adapters.brokers import open_gauge
from slackwater.adapters.brokers.recovery import open_recovery
from slackwater.adapters.brokers.results import CeleryResults
from slackwater.adapters.brokers.whereabouts import Whereabouts
from slackwater.adapters.celery.canary import sender_of
from slackwater.app import Slackwater
from slackwater.cli.main import load_shared
from slackwater.cli.tables import print_table
from slackwater.core.dead_letter import Flood
from slackwater.core.sweep import Sweep
from slackwater.engine.breaker import Breaker
from slackwater.engine.canaries import Canaries
from slackwater.engine.housekeeping import LateHolds, Retention, StuckOccurrences
from slackwater.engine.lost_runs import LostRuns
from slackwater.engine.stuck_bundles import StuckBundles
from slackwater.engine.sweeping import QueryAndCount, Round, Sweepers

DRAIN_EVERY = timedelta(seconds=1)
BUNDLES_EVERY = timedelta(seconds=10)
RETENTION_EVERY = timedelta(hours=1)
CLOSED_SHOWN = 20


@click.command(name="sweepers", help="What each sweeper did last, and the groups and chords that were closed.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document for machines.")
@click.pass_context
def command(context: click.Context, *, as_json: bool) -> None:
    """Show the sweepers' latest rounds."""
    sw = load_shared(context)
    sw.store.check()
    rounds, closed = sw.store.sweeps.all(), sw.store.bundles.closed(limit=CLOSED_SHOWN)
    if as_json:
        bundles: list[dict[str, Any]] = [
            {"id": one.id, "state": one.state, "reason": one.reason, "closed_at": one.closed_at} for one in closed
        ]
        shown = {"sweepers": [vars(one) for one in rounds], "closed": bundles}
        click.echo(json.dumps(shown, indent=2, default=str))
        return
    if not rounds:
        click.echo("no sweeper has done a round; a balancer runs them")
    else:
        heads = ("sweeper", "at", "found", "recovered", "note")
        print_table(Console(), heads, [_cells(one) for one in rounds])
    for bundle in closed:
        click.echo(f"{bundle.id}  {bundle.closed_at:%d %b %H:%M:%S}Z  {bundle.state}  {bundle.reason}")


def _cells(one: Sweep) -> tuple[str, ...]:
    said = f"failed: {one.error}" if one.error else one.note
    return (one.sweeper, f"{one.at:%d %b %H:%M:%S}Z", str(one.found_count), str(one.recovered_count), said)


def sweepers_of(sw: Slackwater) -> Sweepers:
    """Put the built-in sweepers and the application's own together."""
    store, clock, settings = sw.store, sw.clock, sw.settings
    stuck = StuckOccurrences(store=store, results=CeleryResults(sw.app), clock=clock, grace=settings.stuck_after)
    retention = Retention(
        store=store, clock=clock, keys_kept_for=settings.keys_kept_for, letters_kept_for=settings.letters_kept_for
    )
    breaker = Breaker(store=store, clock=clock, rule=Flood(count=settings.flood_count), pause_for=settings.pause_for)
    dead_workers = sw.dead_workers(open_recovery(sw.app, realm=sw.realm))
    drained = QueryAndCount(name="broker's dead letters", act=sw.broker_letters(), clock=clock)
    canaries = Canaries(
        canaries=store.canaries,
        presence=store.presence,
        paused=lambda: [one.lane for one in store.dead_letters.pauses()],
        send=sender_of(sw.app, sw.queues),
        clock=clock,
        within=settings.canary_within,
    )
    built_in = [
        Round(name="canaries", sweeper=canaries, every=settings.canary_every),
        Round(name="dead workers", sweeper=dead_workers, every=settings.sweep_every),
        Round(name=drained.name, sweeper=drained, every=DRAIN_EVERY),
        Round(
            name="late holds",
            sweeper=LateHolds(store=store, clock=clock, expire=sw.expire_held),
            every=settings.sweep_every,
        ),
        Round(name="lost runs", sweeper=lost_runs_of(sw), every=settings.sweep_every),
        Round(name="stuck bundles", sweeper=stuck_bundles_of(sw), every=BUNDLES_EVERY),
        Round(name="stuck occurrences", sweeper=stuck, every=settings.sweep_every),
        Round(name="breaker", sweeper=breaker, every=settings.sweep_every),
        Round(name="retention", sweeper=retention, every=RETENTION_EVERY),
    ]
    return Sweepers(rounds=[*built_in, *sw.sweepers.values()], sweeps=store.sweeps, clock=clock)


def lost_runs_of(sw: Slackwater) -> LostRuns:
    """Put the sweeper of lost runs together."""
    settings = sw.settings
    gauge = open_gauge(sw.app, management_url=settings.rabbitmq_management_url)
    return LostRuns(
        store=sw.store,
        lost=sw.lost_jobs(),
        lanes=frozenset(sw.lanes),
        look_at_broker=lambda: gauge.read(list(sw.queues.values())),
        clock=sw.clock,
        lives_for=settings.lease_lives_for,
        lost_after=settings.nothing_returns_after,
        hopeless_after=settings.pending_for,
    )


def stuck_bundles_of(sw: Slackwater, *, every: timedelta = BUNDLES_EVERY) -> StuckBundles:
    """Put the sweeper of bundles together, which will do a round as often as that."""
    settings = sw.settings
    whereabouts = Whereabouts(sw.app, list(sw.queues.values()), management_url=settings.rabbitmq_management_url)
    return StuckBundles(
        store=sw.store,
        results=CeleryResults(sw.app),
        placed=whereabouts.placed,
        ends=sw.bundle_ends(),
        clock=sw.clock,
        lives_for=max(settings.lease_lives_for, 3 * every),
        missing_after=settings.nothing_returns_after,
        grace=settings.stuck_after,
    )

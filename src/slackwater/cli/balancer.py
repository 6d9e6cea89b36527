"""`slackwater balancer`: schedule and sense until told to stop."""

from __future__ import annotations

import signal
from threading import Event, Thread
from typing import Any

import click

from slackwater.adapters.brokers import open_gauge
from slackwater.adapters.brokers.results import CeleryResults
from slackwater.adapters.celery.publisher import CeleryPublisher
from slackwater.app import Slackwater
from slackwater.cli.main import load_shared, say_notes
from slackwater.cli.sweepers import sweepers_of
from slackwater.engine.balancer import Balancer
from slackwater.engine.probe import Probe
from slackwater.engine.settle import Settler
from slackwater.engine.tick import Ticker

SWEEPERS_END_WITHIN_S = 5.0


@click.command(name="balancer", help="Publish what is due and read every lane, until SIGTERM or Ctrl-C.")
@click.pass_context
def command(context: click.Context) -> None:
    """Run the balancer in this process."""
    sw = load_shared(context)
    sw.check()
    sw.check_broker([])
    sw.store.check()
    say_notes(sw)
    stop = Event()

    def ask_to_stop(*_: Any) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ask_to_stop)
    # Beside the schedule, which must not wait for a sweeper.
    sweeping = Thread(target=sweepers_of(sw).run, args=(stop,), name="slackwater-sweepers", daemon=True)
    sweeping.start()
    balancer_of(sw).run(stop)
    sweeping.join(SWEEPERS_END_WITHIN_S)
    sw.store.close()


def probe_of(sw: Slackwater) -> Probe:
    """Put a probe together."""
    gauge = open_gauge(sw.app, management_url=sw.settings.rabbitmq_management_url)
    return Probe(queues=sw.queues, gauge=gauge, presence=sw.store.presence, clock=sw.clock)


def balancer_of(sw: Slackwater) -> Balancer:
    """Put a balancer together from an application's parts."""
    store, clock = sw.store, sw.clock
    tasks = [entry.task or name for name, entry in sw.schedule.entries.items()]
    ticker = Ticker(
        schedule=sw.schedule,
        lanes={task: lane for task in tasks if (lane := sw.lane_of(task)) is not None},
        occurrences=store.occurrences,
        publisher=CeleryPublisher(app=sw.app, clock=clock),
        clock=clock,
    )
    settler = Settler(
        occurrences=store.occurrences, fan_outs=store.fan_outs, results=CeleryResults(sw.app), clock=clock
    )
    return Balancer(
        ticker=ticker,
        settler=settler,
        probe=probe_of(sw),
        readings=store.readings,
        clock=clock,
        settings=sw.settings,
    )

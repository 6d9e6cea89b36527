"""`slackwater migrate`: bring the store to this program's version."""

from __future__ import annotations

import click

from slackwater.cli.main import load_shared

HELP = "Bring the store's tables to this program's version, and count new entries from now on; safe to repeat."


@click.command(name="migrate", help=HELP)
@click.pass_context
def command(context: click.Context) -> None:
    """Run the store's migrations, and note the entries that are new."""
    sw = load_shared(context)
    sw.store.migrate()
    new = sw.adopt_schedule()
    click.echo("store: up to date")
    if new:
        click.echo(f"schedule: from now on counts {', '.join(new)}")

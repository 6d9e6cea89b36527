"""`slackwater migrate`: bring the store to this program's version."""

from __future__ import annotations

import click

from slackwater.cli.main import load_shared


@click.command(name="migrate", help="Bring the store's tables to this program's version; safe to repeat.")
@click.pass_context
def command(context: click.Context) -> None:
    """Run the store's migrations."""
    load_shared(context).store.migrate()
    click.echo("store: up to date")

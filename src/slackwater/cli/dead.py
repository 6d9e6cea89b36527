"""`slackwater dead list|show|replay|discard|resume`: jobs taken out of circulation, and lanes that they paused."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

import click

from slackwater.adapters.celery.replay import Edit, Replayer
from slackwater.adapters.celery.verbatim import body_of
from slackwater.app import Slackwater
from slackwater.cli.main import load_shared
from slackwater.core.dead_letter import DeadLetter
from slackwater.core.lane import find
from slackwater.errors import ConfigurationError
from slackwater.ports import LetterFilter

MOST = 10_000


@click.group(name="dead", help="Dead letters: jobs taken out of circulation.")
def command() -> None:
    """Group the commands."""


def filtered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose dead letters; the command gets `which`."""

    @click.option("--lane", help="Of this lane.")
    @click.option("--task", help="Of this task.")
    @click.option("--cause", help="Of this cause: an error's kind, or poison.")
    @click.option("--hours", type=click.FloatRange(0, min_open=True), help="Buried in the last so many hours.")
    @wraps(function)
    @click.pass_context
    def chosen(
        context: click.Context,
        /,
        *args: Any,
        lane: str | None,
        task: str | None,
        cause: str | None,
        hours: float | None,
        **options: Any,
    ) -> Any:
        sw = load_shared(context)
        sw.store.check()
        since = None if hours is None else sw.clock.run() - timedelta(hours=hours)
        which = LetterFilter(lane=lane, task=task, cause=cause, since=since)
        return context.invoke(function, sw, which, *args, **options)

    return chosen


@command.command("list")
@filtered
@click.option("--limit", type=click.IntRange(1, MOST), default=50, show_default=True, help="At most so many.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document for machines.")
def list_command(sw: Slackwater, which: LetterFilter, *, limit: int, as_json: bool) -> None:
    """List open dead letters, newest first."""
    letters = sw.store.dead_letters.list(which, limit=limit)
    if as_json:
        click.echo(json.dumps([to_json(letter) for letter in letters], indent=2, default=str))
        return
    if not letters:
        click.echo("no dead letters")
        return
    for letter in letters:  # a line each, whole: an id that is cut cannot be replayed
        counted = f"attempts {letter.attempts}, tries {letter.tries}"
        click.echo(
            f"{letter.job}  {letter.buried_at:%d %b %H:%M:%S}Z  {letter.task}  {letter.state} {letter.cause}  "
            f"{counted}  {letter.reason}"
        )


@command.command("show")
@click.argument("job")
@click.option("--arguments", is_flag=True, help="Show the arguments too; they may hold what is nobody's business.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document for machines.")
@click.pass_context
def show_command(context: click.Context, job: str, *, arguments: bool, as_json: bool) -> None:
    """Show all that is known of one dead letter."""
    sw = load_shared(context)
    letter = sw.store.dead_letters.get(job)
    if letter is None:
        raise ConfigurationError(f"job {job}: there is no dead letter of it; see slackwater dead list")
    shown = to_json(letter, traceback=True)
    if arguments and letter.message is not None:
        shown["args"], shown["kwargs"], _ = body_of(letter.message, accept=sw.app.conf.accept_content)
    if as_json:
        click.echo(json.dumps(shown, indent=2, default=str))
        return
    for name, value in shown.items():
        if name != "traceback":
            click.echo(f"{name}: {'' if value is None else value}")
    if letter.traceback:
        click.echo(letter.traceback.rstrip())


@command.command("replay")
@filtered
@click.argument("jobs", nargs=-1)
@click.option("--all", "all_of_them", is_flag=True, help="All that the options choose, instead of by id.")
@click.option("--args", "args_text", help="Other positional arguments, as a JSON list (for one job).")
@click.option("--kwargs", "kwargs_text", help="Other keyword arguments, as a JSON object (for one job).")
@click.option(
    "--start-by", type=click.DateTime(["%Y-%m-%dT%H:%M:%S%z"]), help="Last instant of the first start, with zone."
)
def replay_command(  # noqa: PLR0913  # one parameter an option
    sw: Slackwater,
    which: LetterFilter,
    *,
    jobs: Sequence[str],
    all_of_them: bool,
    args_text: str | None,
    kwargs_text: str | None,
    start_by: datetime | None,
) -> None:
    """Do the work of dead letters again, each as a new job that knows whose replay it is."""
    chosen = _chosen(sw, which, jobs, all_of_them=all_of_them)
    edit = Edit(
        args=_parsed("--args", args_text, list), kwargs=_parsed("--kwargs", kwargs_text, dict), start_by=start_by
    )
    if len(chosen) > 1 and (edit.args is not None or edit.kwargs is not None):
        raise ConfigurationError("--args and --kwargs edit one job; name one")
    replayer = Replayer(app=sw.app, store=sw.store, clock=sw.clock)
    for job in chosen:
        click.echo(f"{job} is replayed as {replayer.replay(job, edit)}")
    if not chosen:
        click.echo("no dead letters")


@command.command("discard")
@filtered
@click.argument("jobs", nargs=-1)
@click.option("--all", "all_of_them", is_flag=True, help="All that the options choose, instead of by id.")
def discard_command(sw: Slackwater, which: LetterFilter, *, jobs: Sequence[str], all_of_them: bool) -> None:
    """Take dead letters out of sight, and drop their messages."""
    chosen = _chosen(sw, which, jobs, all_of_them=all_of_them)
    click.echo(f"{sw.store.dead_letters.discard(chosen, at=sw.clock.run())} discarded")


@command.command("resume")
@click.argument("lane")
@click.pass_context
def resume_command(context: click.Context, lane: str) -> None:
    """Let a lane that a flood of dead letters has paused work again."""
    sw = load_shared(context)
    sw.store.check()
    name = find(sw.lanes, lane, asked_by="dead resume").name
    if not sw.store.dead_letters.resume(name):
        raise ConfigurationError(f"lane {name}: it is not paused; see slackwater status")
    click.echo(f"{name} works again")


def _chosen(sw: Slackwater, which: LetterFilter, jobs: Sequence[str], *, all_of_them: bool) -> Sequence[str]:
    if bool(jobs) == all_of_them:
        raise ConfigurationError("name the jobs, or choose with the options and --all, one of both")
    return jobs or [letter.job for letter in sw.store.dead_letters.list(which, limit=MOST)]


def _parsed(option: str, text: str | None, kind: type[Any]) -> Any:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"{option}: no JSON ({error})") from error
    if not isinstance(value, kind):
        raise ConfigurationError(f"{option}: give a JSON {'list' if kind is list else 'object'}, not {text}")
    return value


def to_json(letter: DeadLetter, *, traceback: bool = False) -> dict[str, Any]:
    """Return a letter in plain JSON types, without the job's arguments."""
    shown: dict[str, Any] = {
        "job": letter.job,
        "task": letter.task,
        "lane": letter.lane,
        "tenant": letter.tenant,
        "state": letter.state.value,
        "cause": letter.cause,
        "reason": letter.reason,
        "attempts": letter.attempts,
        "tries": letter.tries,
        "published_at": None if letter.published_at is None else letter.published_at.isoformat(),
        "buried_at": letter.buried_at.isoformat(),
        "message_kept": letter.message is not None,
        "replayed_as": letter.replayed_as,
        "replay_of": letter.replay_of,
    }
    return shown | ({"traceback": letter.traceback} if traceback else {})
